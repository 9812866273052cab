//! The tokens' bytes by id, laid out to be copied: what decoding reads where these bytes are the text.

use super::IDS_A_POLL;
use crate::error::{Error, Result};
use crate::interrupt::Interrupt;
use crate::model::Model;

/// What is copied for a token whatever its length: one load and one store.
const SLOT: usize = 16;
/// The longest token that fits beside its length, which is the slot's last byte.
const SHORT: u8 = SLOT as u8 - 1;
/// The length of a special token, which may have to be left out.
const SPECIAL: u8 = 254;
/// The length of a token that does not fit, or of an id without a token.
const ELSEWHERE: u8 = 255;

/// The bytes of short tokens, each in a slot of its own.
#[derive(Debug)]
pub(crate) struct Table {
    slots: Vec<[u8; SLOT]>,
}

impl Table {
    /// Lays out the tokens of a model; ids far beyond the number of tokens are left to the model.
    pub fn new(model: &Model) -> Self {
        let mut slots = vec![[ELSEWHERE; SLOT]; bound(model)];
        for (id, token) in model.vocabulary().iter() {
            put(&mut slots, id, token);
        }
        for token in model.added() {
            put(&mut slots, token.id, token.content.as_bytes());
            if let (true, Some(slot)) = (token.special, slots.get_mut(token.id as usize)) {
                slot[SLOT - 1] = SPECIAL;
            }
        }
        Self { slots }
    }

    /// Appends the bytes of ids, all or none.
    pub fn append(
        &self,
        model: &Model,
        ids: &[u32],
        skip_special_tokens: bool,
        bytes: &mut Vec<u8>,
        interrupt: &Interrupt<'_>,
    ) -> Result<()> {
        let read = Reader {
            slots: &self.slots,
            model,
            skip_special_tokens,
        };
        let mut length = 0;
        for (run, ids) in ids.chunks(IDS_A_POLL).enumerate() {
            poll_before(run, interrupt)?;
            length += read.length(ids, run * IDS_A_POLL)?;
        }
        let start = bytes.len();
        if start == 0 {
            *bytes = vec![0; length]; // which the system has at hand
        } else {
            bytes.resize(start + length, 0);
        }
        let copied = read.copy_all(ids, &mut bytes[start..], interrupt);
        if copied.is_err() {
            bytes.truncate(start);
        }
        copied
    }
}

/// Polls now and then, but not in a call that is over at once.
fn poll_before(run: usize, interrupt: &Interrupt<'_>) -> Result<()> {
    if run == 0 {
        interrupt.check()
    } else {
        interrupt.poll()
    }
}

/// How many ids have slots: all, if there are no large holes between them.
fn bound(model: &Model) -> usize {
    let tokens = model.vocabulary().iter().map(|(id, _)| id).last();
    let added = model.added().last().map(|token| token.id);
    let ids = tokens.max(added).map_or(0, |last| last as usize + 1);
    ids.min(2 * (model.vocabulary().len() + model.added().len()) + 1024)
}

fn put(slots: &mut [[u8; SLOT]], id: u32, token: &[u8]) {
    if let Some(slot) = slots.get_mut(id as usize) {
        if token.len() <= usize::from(SHORT) {
            slot[..token.len()].copy_from_slice(token);
            slot[SLOT - 1] = token.len() as u8;
        }
    }
}

struct Reader<'a> {
    slots: &'a [[u8; SLOT]],
    model: &'a Model,
    skip_special_tokens: bool,
}

impl<'a> Reader<'a> {
    fn slot(&self, id: u32) -> &'a [u8; SLOT] {
        const NO_SLOT: &[u8; SLOT] = &[ELSEWHERE; SLOT];
        self.slots.get(id as usize).unwrap_or(NO_SLOT)
    }

    /// The bytes of a token that is not in its slot.
    #[cold]
    fn elsewhere(&self, id: u32, position: usize) -> Result<&'a [u8]> {
        if self.skip_special_tokens && self.model.is_special(id) {
            return Ok(&[]);
        }
        let token = self.model.token(id);
        token.ok_or(Error::UnknownId { id, position })
    }

    /// How many bytes ids have, of which the first stands at `start`.
    fn length(&self, ids: &[u32], start: usize) -> Result<usize> {
        let mut length = 0;
        for (position, &id) in ids.iter().enumerate() {
            length += match self.slot(id)[SLOT - 1] {
                short @ 0..=SHORT => usize::from(short),
                SPECIAL if self.skip_special_tokens => 0,
                _ => self.elsewhere(id, start + position)?.len(),
            };
        }
        Ok(length)
    }

    /// Copies the bytes of ids, which `bytes` have room for.
    fn copy_all(&self, ids: &[u32], mut bytes: &mut [u8], interrupt: &Interrupt<'_>) -> Result<()> {
        for (run, ids) in ids.chunks(IDS_A_POLL).enumerate() {
            poll_before(run, interrupt)?;
            bytes = self.copy(ids, bytes)?;
        }
        Ok(())
    }

    /// Copies the bytes of ids, and returns what is left of `bytes`, which have room for them.
    fn copy<'b>(&self, ids: &[u32], mut bytes: &'b mut [u8]) -> Result<&'b mut [u8]> {
        for &id in ids {
            let slot = self.slot(id);
            let token: &[u8] = match slot[SLOT - 1] {
                short @ 0..=SHORT => {
                    let short = usize::from(short);
                    if let Some(whole) = bytes.first_chunk_mut::<SLOT>() {
                        *whole = *slot; // what is too much is written over by the next
                        bytes = &mut bytes[short..];
                        continue;
                    }
                    &slot[..short]
                }
                SPECIAL if self.skip_special_tokens => continue,
                _ => self.elsewhere(id, 0)?,
            };
            let (copied, rest) = bytes.split_at_mut(token.len());
            copied.copy_from_slice(token);
            bytes = rest;
        }
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Settings;
    use crate::special::AddedToken;
    use proptest::prelude::*;

    /// Tokens of every length around a slot's, holes between the ids, and ids beyond every slot.
    fn model() -> Model {
        let mut tokens: Vec<(u32, Vec<u8>)> =
            (0..=255).map(|byte| (byte, vec![byte as u8])).collect();
        tokens.extend((2..40).map(|length| {
            (
                260 + 3 * length,
                vec![b'a' + length as u8 % 26; length as usize],
            )
        }));
        tokens.push((3_000_000_000, b"far".to_vec()));
        tokens.push((3_000_000_001, b"far, and longer than a slot".to_vec()));
        let added = |content: &str, id, special| AddedToken {
            special,
            ..AddedToken::special(content, id)
        };
        let added = vec![
            added("<s>", 256, true),
            added("<a special token, longer than a slot>", 257, true),
            added("<plain>", 258, false),
            added("<a plain added token, longer than a slot>", 259, false),
            added("<far>", 4_000_000_000, true),
            added("<far and plain>", 4_000_000_001, false),
        ];
        Model::new(tokens, Some(&[]), Settings::default(), added).unwrap()
    }

    /// One after the other, as the model has them.
    fn simply(model: &Model, ids: &[u32], skip_special_tokens: bool) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        for (position, &id) in ids.iter().enumerate() {
            let token = model.token(id).ok_or(Error::UnknownId { id, position })?;
            let special = model.is_special(id);
            if !(special && skip_special_tokens) {
                bytes.extend_from_slice(token);
            }
        }
        Ok(bytes)
    }

    fn appended(model: &Model, ids: &[u32], skip: bool, before: &[u8]) -> Result<Vec<u8>> {
        let mut bytes = before.to_vec();
        let never = Interrupt::never();
        Table::new(model).append(model, ids, skip, &mut bytes, &never)?;
        Ok(bytes)
    }

    fn an_id() -> impl Strategy<Value = u32> {
        prop_oneof![
            20 => 0..260_u32,
            10 => (2..40_u32).prop_map(|length| 260 + 3 * length),
            2 => 3_000_000_000..=3_000_000_001_u32,
            2 => 4_000_000_000..=4_000_000_001_u32,
        ]
    }

    proptest! {
        #[test]
        fn bytes_are_those_of_the_tokens(
            ids in prop::collection::vec(an_id(), 0..200),
            skip: bool,
            before in prop::sample::select(vec![&b""[..], b"before"]),
        ) {
            let model = model();
            let mut expected = before.to_vec();
            expected.extend(simply(&model, &ids, skip).unwrap());
            prop_assert_eq!(appended(&model, &ids, skip, before).unwrap(), expected);
        }

        #[test]
        fn unknown_ids_are_named_where_they_stand(
            mut ids in prop::collection::vec(an_id(), 1..50),
            unknown in prop::sample::select(vec![261, 400, 5000, 3_000_000_002, u32::MAX]),
            at: prop::sample::Index,
            skip: bool,
        ) {
            let model = model();
            *at.get_mut(&mut ids) = unknown;
            let at = at.index(ids.len());
            let error = appended(&model, &ids, skip, b"").unwrap_err();
            let Error::UnknownId { id, position } = error else {
                return Err(TestCaseError::fail(error.to_string()));
            };
            prop_assert_eq!((id, position), (unknown, at));
        }
    }

    #[test]
    fn positions_and_polls_go_on_from_run_to_run() {
        let model = model();
        let mut ids = vec![97; IDS_A_POLL + 10];
        assert_eq!(
            appended(&model, &ids, false, b"").unwrap(),
            vec![b'a'; ids.len()]
        );
        let stop = Interrupt::new(&|| true);
        let stopped = Table::new(&model).append(&model, &ids, false, &mut Vec::new(), &stop);
        assert!(matches!(stopped, Err(Error::Interrupted)));
        ids[IDS_A_POLL + 3] = 5000;
        let error = appended(&model, &ids, false, b"").unwrap_err();
        assert!(matches!(error, Error::UnknownId { position, .. } if position == IDS_A_POLL + 3));
    }

    #[test]
    fn far_ids_take_no_memory() {
        assert!(Table::new(&model()).slots.len() < 5000);
        let empty = Model::new(Vec::new(), Some(&[]), Settings::default(), Vec::new()).unwrap();
        assert_eq!(Table::new(&empty).slots.len(), 0);
    }
}
