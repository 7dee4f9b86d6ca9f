//! The tests of a scan, as they are given on the command line.

use statehouse::Value;
use statehouse::records::Test;

use crate::exit::Failure;
use crate::given::value;

/// A comparison with a value.
type MakeTest = fn(Value) -> Test;

/// Tests of a scan: `FIELD=VALUE`, `!=`, `<`, `<=`, `>`, `>=`, `FIELD in A,B`, `FIELD not in A,B`, `FIELD exists`.
pub(crate) fn test(given: &str) -> Result<(String, Test), Failure> {
    let one = |given: &str| value(given.trim(), false).map(|value| value.0);
    let list = |given: &str| given.split(',').map(one).collect::<Result<Vec<_>, _>>();
    let named = |field: &str, test: Test| Ok((field.trim().to_owned(), test));
    if let Some(field) = given.strip_suffix(" exists") {
        return named(field, Test::Exists);
    }
    if let Some((field, values)) = given.split_once(" not in ") {
        return named(field, Test::NotIn(list(values)?));
    }
    if let Some((field, values)) = given.split_once(" in ") {
        return named(field, Test::In(list(values)?));
    }
    let operator = given.find(['=', '!', '<', '>']).filter(|place| *place > 0);
    let Some(place) = operator else {
        return Err(Failure::usage(format!(
            "{given:?} is not a test; write FIELD=VALUE, FIELD>=VALUE or FIELD exists"
        )));
    };
    let (field, rest) = given.split_at(place);
    let tests: [(&str, MakeTest); 6] =
        [("!=", Test::Ne), ("<=", Test::Lte), (">=", Test::Gte), ("<", Test::Lt), (">", Test::Gt), ("=", Test::Eq)];
    let Some((test, given)) = tests.iter().find_map(|(sign, test)| Some((test, rest.strip_prefix(sign)?))) else {
        return Err(Failure::usage(format!("{given:?} is not a test; only != starts with !")));
    };
    if given.starts_with('=') {
        return Err(Failure::usage(format!("{rest:?} is not a comparison; write {field}=VALUE")));
    }
    named(field, test(one(given)?))
}

#[cfg(test)]
mod tests {
    use statehouse::records::Filter;
    use wire::records::Where;

    use super::*;

    #[test]
    fn tests_have_signs_and_words() {
        assert!(test("state==failed").is_err(), "it would look for =failed");
        let tested = |text| {
            let filter = Filter { tests: vec![test(text).expect("a test")] };
            serde_json::to_value(Where(filter)).expect("text").as_str().map(str::to_owned).expect("text")
        };
        assert_eq!(tested("state=pending"), r#"[["state","eq","pending"]]"#);
        assert_eq!(tested("n >= 5"), r#"[["n","gte",5]]"#);
        assert_eq!(tested("n!=1e400"), r#"[["n","ne",1e400]]"#);
        assert_eq!(tested("state in a,b"), r#"[["state","in",["a","b"]]]"#);
        assert_eq!(tested("worker exists"), r#"[["worker","exists"]]"#);
        assert!(test("state").is_err() && test("=5").is_err() && test("a!5").is_err());
    }
}
