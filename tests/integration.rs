//! Tests that need a session, the shell or files, in one binary: it is linked once.

mod integration {
    mod accuracy;
    mod anonypyx;
    mod attacks;
    mod audits;
    mod begins;
    mod book;
    mod cells;
    #[cfg(feature = "distributed")]
    mod cluster;
    mod correlation;
    mod cures;
    mod deletion_vectors;
    mod delta;
    mod digests;
    mod docs;
    mod encodings;
    mod estimates;
    mod evidence;
    mod experiments;
    mod faults;
    mod flat;
    mod formats;
    mod helpful;
    mod joint;
    mod kept;
    mod lake;
    mod ledgers;
    mod long_texts;
    mod m_distinct_joint;
    mod mondrian;
    mod muco;
    mod optimizer;
    mod principles;
    mod private_files;
    mod program;
    mod publications;
    mod pycanon;
    mod python;
    mod releases;
    mod reposition;
    mod secrets;
    mod sequential;
    mod served;
    mod served_doors;
    mod served_limits;
    mod served_silence;
    mod shell;
    mod silence;
    mod slt;
    mod statements;
    mod stores;
    mod support;
    mod text_order;
    mod values;
}
