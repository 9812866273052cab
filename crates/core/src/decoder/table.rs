//! The bytes of each token by id, laid out for copying.

use crate::error::{Error, Result};
use crate::interrupt::Interrupt;
use crate::memory::zeros;
use crate::model::Model;
use crate::reserve::{filled, reserve, with_capacity};
use std::mem::MaybeUninit;

/// Ids between two polls for interrupts.
pub const IDS_PER_POLL: usize = 1 << 18;

/// Bytes of a slot. A copy always moves a whole slot, whatever the token's length: one load, one store.
const SLOT: usize = 16;
/// The longest token that a slot holds. The slot's last byte is the length.
const MAX_INLINE: u8 = SLOT as u8 - 1;
/// The length byte of a special token, which the caller may skip.
const SPECIAL: u8 = 254;
/// The length byte of a token that is too long, and of an id without a token.
const OUT_OF_LINE: u8 = 255;

/// The bytes of short tokens, one slot an id.
pub struct DecodeTable {
    slots: Vec<[u8; SLOT]>,
    /// The last byte of each slot: a table that fits the processor's cache.
    lengths: Vec<u8>,
    model: Model,
}

/// A byte of memory that is decoded to.
trait Byte: Copy {
    fn of(byte: u8) -> Self;
}

impl Byte for u8 {
    #[inline(always)]
    fn of(byte: u8) -> Self {
        byte
    }
}

impl Byte for MaybeUninit<u8> {
    #[inline(always)]
    fn of(byte: u8) -> Self {
        Self::new(byte)
    }
}

impl DecodeTable {
    /// Lays out the tokens of a model. Ids far beyond the number of tokens have no slot.
    pub fn new(model: &Model) -> Result<Self> {
        let mut slots = filled([OUT_OF_LINE; SLOT], slot_count(model))?;
        let added = model.added().iter();
        let added = added.map(|token| {
            let form = model.normal_form(token.id);
            (token.id, form.unwrap_or(&token.content).as_bytes())
        });
        for (id, token) in model.vocabulary().iter().chain(added) {
            if let Some(slot) = slots.get_mut(id as usize) {
                if token.len() <= usize::from(MAX_INLINE) {
                    slot[..token.len()].copy_from_slice(token);
                    slot[SLOT - 1] = token.len() as u8;
                }
            }
        }
        let skipped = model.added().iter();
        for token in skipped.filter(|token| model.is_skipped(token.id)) {
            if let Some(slot) = slots.get_mut(token.id as usize) {
                slot[SLOT - 1] = SPECIAL;
            }
        }
        let mut lengths = with_capacity(slots.len())?;
        lengths.extend(slots.iter().map(|slot| slot[SLOT - 1]));
        let model = model.clone();
        Ok(Self {
            slots,
            lengths,
            model,
        })
    }

    /// Appends the bytes of all ids, or nothing if an id is unknown. `skip` leaves the special tokens out.
    pub fn append(
        &self,
        ids: &[u32],
        skip: bool,
        bytes: &mut Vec<u8>,
        interrupt: &Interrupt<'_>,
    ) -> Result<()> {
        let length = self.length(ids, skip, interrupt)?;
        let start = bytes.len();
        if start == 0 {
            *bytes = zeros(length)?;
        } else {
            reserve(bytes, length)?;
            bytes.resize(start + length, 0);
        }
        let copied = self.copy(ids, skip, &mut bytes[start..], interrupt);
        let copied = copied.map(|_| ());
        if copied.is_err() {
            bytes.truncate(start);
        }
        copied
    }

    fn slot(&self, id: u32) -> &[u8; SLOT] {
        const NO_SLOT: &[u8; SLOT] = &[OUT_OF_LINE; SLOT];
        self.slots.get(id as usize).unwrap_or(NO_SLOT)
    }

    /// The bytes of a token that its slot does not hold.
    #[cold]
    fn out_of_line(&self, id: u32, position: usize, skip: bool) -> Result<&[u8]> {
        if skip && self.model.is_skipped(id) {
            return Ok(&[]);
        }
        let token = self.model.decoded(id);
        token.ok_or(Error::UnknownId { id, position })
    }

    /// The number of bytes of ids.
    pub fn length(&self, ids: &[u32], skip: bool, interrupt: &Interrupt<'_>) -> Result<usize> {
        let mut length = 0;
        for (chunk, ids) in ids.chunks(IDS_PER_POLL).enumerate() {
            poll_after_first(chunk, interrupt)?;
            for (position, &id) in (chunk * IDS_PER_POLL..).zip(ids) {
                length += match self.lengths.get(id as usize) {
                    Some(&inline @ 0..=MAX_INLINE) => usize::from(inline),
                    Some(&SPECIAL) if skip => 0,
                    _ => self.out_of_line(id, position, skip)?.len(),
                };
            }
        }
        Ok(length)
    }

    /// Copies the bytes of ids to the front of `bytes`, which has room for them. Returns the rest.
    #[allow(private_bounds)]
    pub fn copy<'b, B: Byte>(
        &self,
        ids: &[u32],
        skip: bool,
        mut bytes: &'b mut [B],
        interrupt: &Interrupt<'_>,
    ) -> Result<&'b mut [B]> {
        for (chunk, ids) in ids.chunks(IDS_PER_POLL).enumerate() {
            poll_after_first(chunk, interrupt)?;
            bytes = self.copy_chunk(ids, skip, bytes)?;
        }
        Ok(bytes)
    }

    fn copy_chunk<'b, B: Byte>(
        &self,
        ids: &[u32],
        skip: bool,
        mut bytes: &'b mut [B],
    ) -> Result<&'b mut [B]> {
        for &id in ids {
            let slot = self.slot(id);
            let token: &[u8] = match slot[SLOT - 1] {
                inline @ 0..=MAX_INLINE => {
                    let inline = usize::from(inline);
                    if let Some(whole) = bytes.first_chunk_mut::<SLOT>() {
                        *whole = slot.map(B::of); // the next token overwrites the excess
                        bytes = &mut bytes[inline..];
                        continue;
                    }
                    &slot[..inline]
                }
                SPECIAL if skip => continue,
                _ => self.out_of_line(id, 0, skip)?,
            };
            let (copied, rest) = bytes.split_at_mut(token.len());
            for (to, &byte) in copied.iter_mut().zip(token) {
                *to = B::of(byte);
            }
            bytes = rest;
        }
        Ok(bytes)
    }
}

/// Polls for interrupts, except in the first chunk: a short call costs less than a poll.
fn poll_after_first(chunk: usize, interrupt: &Interrupt<'_>) -> Result<()> {
    if chunk == 0 {
        interrupt.check()
    } else {
        interrupt.poll()
    }
}

/// One slot for each id, unless large gaps between the ids would waste memory.
fn slot_count(model: &Model) -> usize {
    let tokens = model.vocabulary().iter().map(|(id, _)| id).last();
    let added = model.added().last().map(|token| token.id);
    let ids = tokens.max(added).map_or(0, |last| last as usize + 1);
    ids.min(2 * (model.vocabulary().len() + model.added().len()) + 1024)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Settings;
    use crate::normalizers::Normalizer;
    use crate::special::AddedToken;
    use proptest::prelude::*;

    /// Token lengths around the size of a slot, gaps between ids, and ids without a slot.
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
            normalized: content.starts_with("<N"),
            ..AddedToken::special(content, id)
        };
        let added = vec![
            added("<n>", 261, true),
            added("<N>", 262, false),
            added("<NN>", 263, true),
            added("<NNN>, whose lower case is longer than a slot", 264, false),
            added("<s>", 256, true),
            added("<a special token, longer than a slot>", 257, true),
            added("<plain>", 258, false),
            added("<a plain added token, longer than a slot>", 259, false),
            added("<far>", 4_000_000_000, true),
            added("<far and plain>", 4_000_000_001, false),
        ];
        let settings = Settings {
            normalizers: vec![Normalizer::Lowercase],
            ..Settings::default()
        };
        Model::new(tokens, Some(&[]), settings, added).unwrap()
    }

    /// The expected bytes, token by token.
    fn reference(model: &Model, ids: &[u32], skip_special_tokens: bool) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        for (position, &id) in ids.iter().enumerate() {
            let token = model.decoded(id).ok_or(Error::UnknownId { id, position })?;
            if !(model.is_skipped(id) && skip_special_tokens) {
                bytes.extend_from_slice(token);
            }
        }
        Ok(bytes)
    }

    fn appended(model: &Model, ids: &[u32], skip: bool, before: &[u8]) -> Result<Vec<u8>> {
        let mut bytes = before.to_vec();
        let never = Interrupt::never();
        DecodeTable::new(model)
            .unwrap()
            .append(ids, skip, &mut bytes, &never)?;
        Ok(bytes)
    }

    fn an_id() -> impl Strategy<Value = u32> {
        prop_oneof![
            20 => 0..260_u32,
            4 => 261..265_u32,
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
            let table = DecodeTable::new(&model).unwrap();
            let never = Interrupt::never();
            let mut expected = before.to_vec();
            expected.extend(reference(&model, &ids, skip).unwrap());
            let length = table.length(&ids, skip, &never).unwrap();
            prop_assert_eq!(before.len() + length, expected.len());
            let mut exact = vec![0; length];
            prop_assert!(table.copy(&ids, skip, &mut exact, &never).unwrap().is_empty());
            prop_assert_eq!(&exact, &expected[before.len()..]);
            prop_assert_eq!(appended(&model, &ids, skip, before).unwrap(), expected);
        }

        #[test]
        fn an_error_names_the_unknown_id_and_its_position(
            mut ids in prop::collection::vec(an_id(), 1..50),
            unknown in prop::sample::select(vec![265, 400, 5000, 3_000_000_002, u32::MAX]),
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
    fn positions_and_polls_continue_across_chunks() {
        let model = model();
        let mut ids = vec![97; IDS_PER_POLL + 10];
        assert_eq!(
            appended(&model, &ids, false, b"").unwrap(),
            vec![b'a'; ids.len()]
        );
        let stop = Interrupt::new(&|| true);
        let stopped = DecodeTable::new(&model)
            .unwrap()
            .append(&ids, false, &mut Vec::new(), &stop);
        assert!(matches!(stopped, Err(Error::Interrupted)));
        ids[IDS_PER_POLL + 3] = 5000;
        let error = appended(&model, &ids, false, b"").unwrap_err();
        assert!(matches!(error, Error::UnknownId { position, .. } if position == IDS_PER_POLL + 3));
    }

    #[test]
    fn ids_with_large_gaps_take_no_memory() {
        assert!(DecodeTable::new(&model()).unwrap().slots.len() < 5000);
        let empty = Model::new(Vec::new(), Some(&[]), Settings::default(), Vec::new()).unwrap();
        assert_eq!(DecodeTable::new(&empty).unwrap().slots.len(), 0);
    }
}
