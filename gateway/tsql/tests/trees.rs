//! Generated expressions: printed and parsed they are the same.

use proptest::prelude::*;
use tsql::tree::{
    Arguments, BinaryOperator, Case, Cast, CastKind, ColumnName, Expression, FunctionCall, Literal,
    LiteralValue, ObjectName, Position, SelectItem, StatementKind, TokenNumber, TypeArgument, TypeName,
    UnaryOperator, Variable,
};
use tsql::{parse, Syntax};

const AT: Position = Position { line: 1, start: 0, end: 0 };

fn leaf() -> impl Strategy<Value = Expression> {
    let literal = |value| Expression::Literal(Literal { value, number: TokenNumber(0), at: AT });
    prop_oneof![
        "[0-9]{1,5}".prop_map(move |digits| literal(LiteralValue::Integer(digits))),
        "[0-9]{0,3}\\.[0-9]{1,3}".prop_map(move |digits| literal(LiteralValue::Decimal(digits))),
        "[0-9]e[+-]?[0-9]".prop_map(move |digits| literal(LiteralValue::Float(digits))),
        "-?[0-9]{1,3}\\.[0-9]{2}".prop_map(move |amount| literal(LiteralValue::Money(amount))),
        "[0-9a-f]{0,6}".prop_map(move |digits| literal(LiteralValue::Binary(digits))),
        (any::<bool>(), "[^\\x00]{0,5}")
            .prop_map(move |(national, text)| literal(LiteralValue::Text { text, national })),
        Just(literal(LiteralValue::Null)),
        "@[a-z_]{1,5}".prop_map(|name| Expression::Variable(Variable { name, at: AT })),
        (name(), proptest::option::of(name())).prop_map(|(column, table)| {
            let table = table.map(|name| Box::new(ObjectName { name, ..ObjectName::default() }));
            Expression::Column(ColumnName { table, column, at: AT })
        }),
    ]
}

fn name() -> impl Strategy<Value = String> {
    "[a-zA-Z_ \\]'\"]{1,6}"
}

fn operator() -> impl Strategy<Value = BinaryOperator> {
    use BinaryOperator as Operator;
    proptest::sample::select(vec![
        Operator::Multiply,
        Operator::Divide,
        Operator::Modulo,
        Operator::Add,
        Operator::Subtract,
        Operator::Concatenate,
        Operator::BitAnd,
        Operator::BitOr,
        Operator::BitXor,
    ])
}

fn comparison() -> impl Strategy<Value = BinaryOperator> {
    use BinaryOperator as Operator;
    proptest::sample::select(vec![
        Operator::Equal,
        Operator::NotEqual,
        Operator::Less,
        Operator::LessOrEqual,
        Operator::Greater,
        Operator::GreaterOrEqual,
    ])
}

fn boxed(expression: Expression) -> Box<Expression> {
    Box::new(expression)
}

fn value() -> impl Strategy<Value = Expression> {
    leaf().prop_recursive(6, 40, 3, |value| {
        let pair = (value.clone(), value.clone());
        prop_oneof![
            (operator(), pair.clone()).prop_map(|(operator, (left, right))| Expression::Binary {
                operator,
                left: boxed(left),
                right: boxed(right),
                at: AT
            }),
            (0..3_u8, value.clone()).prop_map(|(operator, operand)| Expression::Unary {
                operator: [UnaryOperator::Plus, UnaryOperator::Minus, UnaryOperator::Complement]
                    [usize::from(operator)],
                operand: boxed(operand),
                at: AT
            }),
            (condition(value.clone()), pair.clone()).prop_map(|(when, (then, otherwise))| {
                let branches = vec![(when, then)];
                let case = Case { operand: None, branches, otherwise: Some(otherwise), at: AT };
                Expression::Case(Box::new(case))
            }),
            (value.clone(), 1..9_i64).prop_map(|(operand, length)| {
                let arguments = vec![TypeArgument::Number(length)];
                let target = TypeName { name: String::from("varchar"), arguments, alias: None, at: AT };
                let kind = CastKind::Cast;
                Expression::Cast(Box::new(Cast { kind, operand, target, style: None, at: AT }))
            }),
            ("f[a-z]{1,4}_", proptest::collection::vec(value, 0..3)).prop_map(|(name, values)| {
                let name = ObjectName { name, ..ObjectName::default() };
                let arguments = Arguments::Values(values);
                let (within_group, over) = (Vec::new(), None);
                let call = FunctionCall { name, distinct: false, arguments, within_group, over };
                Expression::Function(Box::new(call))
            }),
        ]
    })
}

fn condition(value: BoxedStrategy<Expression>) -> impl Strategy<Value = Expression> {
    let pair = (value.clone(), value.clone());
    let simple = prop_oneof![
        (comparison(), pair.clone()).prop_map(|(operator, (left, right))| Expression::Binary {
            operator,
            left: boxed(left),
            right: boxed(right),
            at: AT
        }),
        (value.clone(), any::<bool>())
            .prop_map(|(operand, negated)| Expression::IsNull { operand: boxed(operand), negated }),
        (value.clone(), pair.clone(), any::<bool>()).prop_map(|(operand, (low, high), negated)| {
            let (low, high) = (boxed(low), boxed(high));
            Expression::Between { operand: boxed(operand), low, high, negated }
        }),
        (pair, proptest::option::of(value.clone()), any::<bool>()).prop_map(
            |((operand, pattern), escape, negated)| {
                let (pattern, escape) = (boxed(pattern), escape.map(boxed));
                Expression::Like { operand: boxed(operand), pattern, escape, negated }
            }
        ),
        (value.clone(), proptest::collection::vec(value, 1..3), any::<bool>()).prop_map(
            |(operand, values, negated)| Expression::In { operand: boxed(operand), values, negated }
        ),
    ];
    simple.prop_recursive(3, 10, 3, |condition| {
        let several = proptest::collection::vec(condition.clone(), 2..4);
        prop_oneof![
            several.clone().prop_map(Expression::And),
            several.prop_map(Expression::Or),
            condition.prop_map(|operand| Expression::Not(boxed(operand))),
        ]
    })
}

proptest! {
    #[test]
    fn printed_and_read_they_are_the_same(value in value()) {
        let text = format!("select {value}");
        let batch = parse(&text, Syntax::default());
        let batch = batch.map_err(|error| TestCaseError::fail(format!("{text}: {error}")))?;
        let StatementKind::Select(query) = &batch.statements[0].kind else { panic!("{text}") };
        let tsql::tree::QueryBody::Select(select) = &query.body else { panic!("{text}") };
        let SelectItem::Value { value: read, .. } = &select.items[0] else { panic!("{text}") };
        prop_assert_eq!(read, &value, "{}", text);
    }
}
