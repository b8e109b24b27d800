//! The proof: what SQL, help, `advise`, publications and audits read of a method is there, made of the folder and of the line in the registry. The
//! library makes functions, options and pages of whatever the registry has.

use super::*;
use crate::given::{Argument, Given, Offered, Registered};
use crate::parameters::Style;
use crate::release::View;
use crate::sample::Table;
use crate::{AnyMethod, METHODS};

fn registered() -> &'static Registered {
    METHODS.iter().find(|method| method.signature.name == "toy").unwrap()
}

fn made_with(k: i64) -> Result<AnyMethod, String> {
    let given = |name: &str| (name == "k").then_some(Argument::Integer(k));
    let given = Given::try_new(registered().signature, Style::Call, given).map_err(|error| error.strip_backtrace())?;
    (registered().of)(&given).map_err(|error| error.strip_backtrace())
}

#[test]
fn arguments_make_its_parameters() {
    let method = made_with(3).unwrap();
    assert_eq!(method, AnyMethod::Toy(Toy { k: 3 }));
    assert_eq!((method.name(), method.guarantee().as_str()), ("toy", "3-anonymity"));
    let refused = made_with(1).unwrap_err();
    assert!(refused.contains("toy: argument k must be at least 2, got 1"), "{refused}");
}

#[test]
fn it_says_what_functions_and_publications_are_made_of() {
    let Registered { signature, offered, .. } = registered();
    assert_eq!((signature.about, *offered), ("one release, of one group", Offered::Both));
    assert!(signature.usage().starts_with("toy(<table or (query)>, k => 3, "), "{}", signature.usage());
    assert_eq!(signature.refused, [("cells", "there is one group")]);
    let promised = made_with(3).unwrap().as_method().promises().unwrap();
    assert_eq!(format!("{promised:?}"), format!("{:?}", Promises::of_groups(vec![Promise::Anonymous { k: 3 }])));
}

#[test]
fn it_releases() {
    let table =
        Table { quasi: vec![vec![Some(30), Some(41), Some(52)]], sensitive: Some(vec![1, 2, 1]), ..Table::default() };
    let batch = table.publish(&made_with(3).unwrap(), View::Public, 1).unwrap();
    assert_eq!(batch.num_rows(), 3);
    let refused = table.publish(&made_with(4).unwrap(), View::Public, 1).unwrap_err().to_string();
    assert!(refused.contains("there are fewer than k = 4 rows"), "{refused}");
}
