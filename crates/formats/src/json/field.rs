//! A value of a JSON file, with its path for error messages.

use crate::error::{FormatError, Place, Result};
use bpe_tokenizer_core::error::shorten;
use serde_json::{Map, Value};

/// The largest id.
pub const MAX_ID: u64 = u32::MAX as u64 - 1;

/// A value; null for a missing member.
#[derive(Clone)]
pub struct Field<'a> {
    /// The name of the file.
    pub file: &'a str,
    /// The path of the value, such as `model.merges[3]`; empty for the whole file.
    pub path: String,
    /// The value.
    pub value: &'a Value,
}

impl<'a> Field<'a> {
    /// The whole of a file.
    pub fn root(file: &'a str, value: &'a Value) -> Self {
        let path = String::new();
        Self { file, path, value }
    }

    /// Whether the value is null or missing.
    pub fn is_null(&self) -> bool {
        self.value.is_null()
    }

    /// An error that names the field.
    pub fn error(&self, problem: &str) -> FormatError {
        FormatError::new(self.file, Place::Field(self.path.clone()), problem)
    }

    /// An error that names the field and shows its value.
    pub fn refused(&self, why: &str) -> FormatError {
        self.error(&format!("{} {why}", shorten(&self.value.to_string(), 80)))
    }

    fn wrong(&self, what: &str) -> FormatError {
        let shown = shorten(&self.value.to_string(), 80);
        self.error(&format!("must be {what}, not {shown}"))
    }

    /// The members of the object.
    pub fn members(&self) -> Result<&'a Map<String, Value>> {
        self.value
            .as_object()
            .ok_or_else(|| self.wrong("an object"))
    }

    /// A member; null if it is missing.
    pub fn get(&self, name: &str) -> Result<Field<'a>> {
        let value = self.members()?.get(name).unwrap_or(&Value::Null);
        let separator = if self.path.is_empty() { "" } else { "." };
        let path = format!("{}{separator}{name}", self.path);
        Ok(Field {
            path,
            value,
            ..*self
        })
    }

    /// A member that must exist.
    pub fn need(&self, name: &str) -> Result<Field<'a>> {
        let member = self.get(name)?;
        match self.members()?.contains_key(name) {
            true => Ok(member),
            false => Err(member.error("is missing")),
        }
    }

    /// The items of the array.
    pub fn items(&self) -> Result<Vec<Field<'a>>> {
        let items = self
            .value
            .as_array()
            .ok_or_else(|| self.wrong("an array"))?;
        let items = items.iter().enumerate().map(|(index, value)| Field {
            path: format!("{}[{index}]", self.path),
            value,
            ..*self
        });
        Ok(items.collect())
    }

    /// The string.
    pub fn text(&self) -> Result<&'a str> {
        self.value.as_str().ok_or_else(|| self.wrong("a string"))
    }

    /// The boolean.
    pub fn flag(&self) -> Result<bool> {
        let flag = self.value.as_bool();
        flag.ok_or_else(|| self.wrong("true or false"))
    }

    /// A flag, or the default if it is null or missing.
    pub fn flag_or(&self, default: bool) -> Result<bool> {
        if self.is_null() {
            return Ok(default);
        }
        self.flag()
    }

    /// The id.
    pub fn id(&self) -> Result<u32> {
        let id = self.value.as_u64().filter(|&id| id <= MAX_ID);
        let id = id.and_then(|id| u32::try_from(id).ok());
        id.ok_or_else(|| self.wrong("an integer from 0 to 4294967294"))
    }

    /// A text of one character.
    pub fn character(&self) -> Result<char> {
        let mut characters = self.text()?.chars();
        match (characters.next(), characters.next()) {
            (Some(character), None) => Ok(character),
            _ => Err(self.refused("must be one character")),
        }
    }

    /// The steps of a component in order, including those of nested `Sequence`s. `members` is the field of a `Sequence`
    /// that holds its steps.
    pub fn steps(&self, members: &str) -> Result<Vec<Field<'a>>> {
        let (mut steps, mut rest) = (Vec::new(), Vec::new());
        if !self.is_null() {
            rest.push(self.clone());
        }
        while let Some(step) = rest.pop() {
            if step.need("type")?.text()? == "Sequence" {
                rest.extend(step.need(members)?.items()?.into_iter().rev());
            } else {
                steps.push(step);
            }
        }
        Ok(steps)
    }

    /// The type of a step.
    pub fn kind(&self) -> Result<&'a str> {
        self.get("type")?.text()
    }
}
