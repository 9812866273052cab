//! Ids to bytes.

use crate::error::{Error, Result};
use crate::model::Model;

/// Appends the bytes of the ids.
pub fn decode(
    model: &Model,
    ids: &[u32],
    skip_special_tokens: bool,
    bytes: &mut Vec<u8>,
) -> Result<()> {
    let has_added = !model.added().is_empty();
    for (position, &id) in ids.iter().enumerate() {
        let added = if has_added {
            model.added_token(id)
        } else {
            None
        };
        match added {
            Some(token) if token.special && skip_special_tokens => {}
            Some(token) => bytes.extend_from_slice(token.content.as_bytes()),
            None => {
                let token = model.vocabulary().token(id);
                bytes.extend_from_slice(token.ok_or(Error::UnknownId { id, position })?);
            }
        }
    }
    Ok(())
}
