//! JSON files: values with their paths, and objects that have each member once.

pub mod distinct;
pub mod field;

pub use distinct::Distinct;
pub use field::Field;
