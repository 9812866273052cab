//! Segments of normalised text to pieces.

use crate::alignment::OffsetMap;
use crate::error::Result;
use crate::merge::MetaspaceSplitPoints;
use crate::model::Model;
use crate::pretokenize::{Piece, PreTokenizers};

/// The fewest bytes for which a block is faster than the pieces one by one: a block costs as much as 64 bytes.
const MIN_BLOCK_BYTES: usize = 14;

/// A segment of normalised text between added tokens.
pub struct TextSegment<'a> {
    pub text: &'a [u8],
    /// Whether the text is known to be UTF-8.
    pub is_utf8: bool,
    pub offsets: OffsetMap<'a>,
}

/// Splits segments into pieces: the pre-tokeniser, then the split points of models without one.
pub struct Splitter {
    pub pre_tokenizers: PreTokenizers,
    pub split_points: Option<MetaspaceSplitPoints>,
}

impl Splitter {
    /// Compiles the split patterns of a model.
    pub fn new(model: &Model) -> Result<Self> {
        Ok(Self {
            pre_tokenizers: PreTokenizers::new(&model.settings().pre_tokenizers)?,
            split_points: MetaspaceSplitPoints::new(model),
        })
    }

    /// Calls `piece` with each piece until it returns false.
    #[inline(always)]
    pub fn split(
        &self,
        segment: &TextSegment<'_>,
        aligned: bool,
        mut piece: impl FnMut(Piece<'_>) -> bool,
    ) -> Result<()> {
        let TextSegment { text, offsets, .. } = segment;
        let Some(points) = &self.split_points else {
            return self.pre_tokenizers.split(text, offsets, aligned, piece);
        };
        let split: &mut dyn FnMut(Piece<'_>) -> bool = &mut |whole| {
            let mut part = |range| piece(Piece { range, ..whole });
            points.cut(whole.text, whole.range.clone(), &mut part)
        };
        self.pre_tokenizers.split(text, offsets, aligned, split)
    }

    /// Whether a segment can be split block by block, and is long enough. Without a position to split at, a block may be the
    /// whole segment, and the bounds of a block are 32-bit.
    pub fn has_blocks(&self, segment: &TextSegment<'_>) -> bool {
        segment.text.len() >= MIN_BLOCK_BYTES
            && self.split_points.is_none()
            && self.pre_tokenizers.has_blocks()
            && u32::try_from(segment.text.len()).is_ok()
    }
}
