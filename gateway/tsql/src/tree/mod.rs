//! The syntax tree of a text: names keep their case, numbers their digits.
//!
//! A tree contains the positions of its parts in the text, which are ignored in comparisons of trees.

mod change;
mod cursor;
mod definition;
mod expression;
mod json;
mod name;
mod position;
mod procedure;
mod query;
mod statement;
mod types;
mod walk;

pub use change::*;
pub use cursor::*;
pub use definition::*;
pub use expression::*;
pub use json::*;
pub use name::*;
pub use position::*;
pub use procedure::*;
pub use query::*;
pub use statement::*;
pub use types::*;
pub use walk::*;
