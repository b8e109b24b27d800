//! Everything that needs a session, the shell or files, in one binary, so that it is linked once.

mod integration {
    mod docs;
    mod mondrian;
    mod optimizer;
    mod pycanon;
    mod releases;
    mod shell;
    mod slt;
    mod support;
}
