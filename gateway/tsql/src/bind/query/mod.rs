//! Queries: each clause of a select, from its sources to its order.

mod combined;
pub(super) mod common_tables;
mod group_by;
mod growth;
pub(super) mod keyed;
pub(super) mod locks;
pub(super) mod order;
mod outer_join;
mod partial;
pub(super) mod rows;
pub(super) mod select;
pub(super) mod sources;
pub(super) mod stars;
pub(super) mod top;
