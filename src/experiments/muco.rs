use super::experiment::Experiment;
pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "muco",
    runs: |_| Vec::new(),
    findings: |_| Vec::new(),
    figures: &[],
    title: "NAME",
    source: "",
    about: "",
    quasi: &["age"],
    sensitive: &["occupation"],
    rows: [1000, 1000],
};
