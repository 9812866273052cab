//! What the fuzz targets share: how bytes become texts, patterns and models, and naive implementations to compare
//! the core with.
//!
//! The input of most targets has two parts: a short setup (a model, a pattern), and what the setup is used on. A setup
//! is slow to build, so recent ones are kept, and most mutations change the second part only.

pub mod input;
pub mod models;
pub mod naive;
#[path = "../../crates/core/tests/support/pattern_parts.rs"]
pub mod pattern_parts;
pub mod patterns;
#[path = "../../crates/core/tests/support/recounting.rs"]
pub mod recounting;
pub mod text;
#[path = "../../crates/core/tests/support/text_parts.rs"]
pub mod text_parts;
