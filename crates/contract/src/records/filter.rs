//! Filters of scans: a conjunction of comparisons with typed values.

use crate::value::Value;

/// One comparison of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Test {
    /// Equal.
    Eq(Value),
    /// Not equal, or the field does not exist.
    Ne(Value),
    /// Less.
    Lt(Value),
    /// Less or equal.
    Lte(Value),
    /// Greater.
    Gt(Value),
    /// Greater or equal.
    Gte(Value),
    /// Equal to one of these.
    In(Vec<Value>),
    /// Equal to none of these, or the field does not exist.
    NotIn(Vec<Value>),
    /// Exists.
    Exists,
}

/// A conjunction: every test must hold. An empty one matches every record.
///
/// ```
/// use statehouse_contract::Value;
/// use statehouse_contract::records::filter::{Filter, Test};
/// let stuck = Filter::all()
///     .and("updated_at", Test::Lt(1_700_000_000_000_i64.into()))
///     .and("state", Test::NotIn(vec!["completed".into(), "failed".into(), "cancelled".into()]));
/// let running = |field: &str| match field {
///     "state" => Some(Value::from("running")),
///     "updated_at" => Some(Value::from(1_600_000_000_000_i64)),
///     _ => None,
/// };
/// assert!(stuck.matches(running));
/// assert!(!stuck.matches(|_| None), "without updated_at it is not less");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Filter {
    /// The fields and their tests.
    pub tests: Vec<(String, Test)>,
}

impl Filter {
    /// Matches every record.
    pub fn all() -> Self {
        Self::default()
    }

    /// The filter with one more test.
    pub fn and(mut self, field: impl Into<String>, test: Test) -> Self {
        self.tests.push((field.into(), test));
        self
    }

    /// Whether every test holds for these fields.
    pub fn matches(&self, field: impl Fn(&str) -> Option<Value>) -> bool {
        self.tests.iter().all(|(name, test)| test.holds(field(name).as_ref()))
    }
}

impl Test {
    /// Whether the test holds for a field, which may not exist. Values of different kinds are unequal and have no
    /// order.
    pub fn holds(&self, found: Option<&Value>) -> bool {
        use std::cmp::Ordering;
        let ordered = |wanted: &Value, holds: fn(Ordering) -> bool| {
            found.and_then(|found| compare(found, wanted)).is_some_and(holds)
        };
        match self {
            Test::Eq(wanted) => found == Some(wanted),
            Test::Ne(wanted) => found != Some(wanted),
            Test::Lt(wanted) => ordered(wanted, Ordering::is_lt),
            Test::Lte(wanted) => ordered(wanted, Ordering::is_le),
            Test::Gt(wanted) => ordered(wanted, Ordering::is_gt),
            Test::Gte(wanted) => ordered(wanted, Ordering::is_ge),
            Test::In(wanted) => found.is_some_and(|found| wanted.contains(found)),
            Test::NotIn(wanted) => !found.is_some_and(|found| wanted.contains(found)),
            Test::Exists => found.is_some(),
        }
    }
}

/// The order of two values of one kind; none between kinds.
pub fn compare(left: &Value, right: &Value) -> Option<std::cmp::Ordering> {
    match (left, right) {
        (Value::Integer(left), Value::Integer(right)) => Some(left.cmp(right)),
        (Value::Text(left), Value::Text(right)) => Some(left.cmp(right)),
        (Value::Bytes(left), Value::Bytes(right)) => Some(left.cmp(right)),
        (Value::Boolean(left), Value::Boolean(right)) => Some(left.cmp(right)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_compared_as_numbers_and_kinds_are_not_mixed() {
        let nine = Value::from(9);
        assert!(Test::Lt(10.into()).holds(Some(&nine)));
        assert!(!Test::Lt("10".into()).holds(Some(&nine)));
        assert!(Test::Ne("9".into()).holds(Some(&nine)));
        assert!(Test::Gte(9.into()).holds(Some(&nine)) && Test::Lte(9.into()).holds(Some(&nine)));
        assert!(!Test::Gt(9.into()).holds(Some(&nine)));
    }

    #[test]
    fn a_missing_field_is_unequal_and_in_no_order() {
        for (test, holds) in [
            (Test::Eq(1.into()), false),
            (Test::Ne(1.into()), true),
            (Test::Lt(1.into()), false),
            (Test::In(vec![1.into()]), false),
            (Test::NotIn(vec![1.into()]), true),
            (Test::Exists, false),
        ] {
            assert_eq!(test.holds(None), holds, "{test:?}");
        }
    }
}
