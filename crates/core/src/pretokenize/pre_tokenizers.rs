//! A pre-tokeniser: its compiled steps, and transducers that run them on blocks of text where they only
//! split.

use super::blocks::{Block, BlockSplitter};
use super::steps::{is_safe_cut, run, Piece, PreTokenizer, Step};
use crate::alignment::OffsetMap;
use crate::error::Result;
use crate::processor::Processor;

/// A compiled pre-tokeniser. Without a step, a text is one piece.
pub struct PreTokenizers {
    pub(super) steps: Vec<Step>,
    blocks: Option<BlockSplitter>,
}

impl PreTokenizers {
    /// Compiles the steps.
    pub fn new(steps: &[PreTokenizer]) -> Result<Self> {
        Self::on(Processor::best(), steps)
    }

    /// Compiles the steps for a processor's instructions.
    pub fn on(processor: Processor, steps: &[PreTokenizer]) -> Result<Self> {
        let steps: Vec<Step> = steps
            .iter()
            .map(PreTokenizer::compile)
            .collect::<Result<_>>()?;
        let blocks = BlockSplitter::new(&steps, processor);
        Ok(Self { steps, blocks })
    }

    /// Compiles split patterns whose matches are pieces.
    pub fn of_patterns(patterns: &[String]) -> Result<Self> {
        let steps: Vec<_> = patterns.iter().map(PreTokenizer::isolated).collect();
        Self::new(&steps)
    }

    /// Whether [`PreTokenizers::next_block`] is available.
    pub fn has_blocks(&self) -> bool {
        self.blocks.is_some()
    }

    /// Finds the pieces of a block that begins at `from`, where a piece begins; returns the block's end.
    /// They are the pieces that [`PreTokenizers::split`] finds.
    #[inline]
    pub fn next_block(
        &self,
        text: &[u8],
        is_utf8: bool,
        from: usize,
        block: &mut Block,
    ) -> Result<usize> {
        match &self.blocks {
            Some(blocks) => blocks.next(&self.steps, text, is_utf8, from, block),
            None => Ok(text.len()),
        }
    }

    /// Whether a step depends on a piece's position in the original text.
    pub fn needs_offsets(&self) -> bool {
        self.steps.iter().any(Step::needs_offsets)
    }

    /// Calls `piece` with each piece of the text until it returns false. Offsets in rewritten texts are
    /// right only if `aligned` is set.
    #[inline(always)]
    pub fn split(
        &self,
        text: &[u8],
        offsets: &OffsetMap<'_>,
        aligned: bool,
        mut piece: impl FnMut(Piece<'_>) -> bool,
    ) -> Result<()> {
        let whole = Piece {
            text,
            range: 0..text.len(),
            offsets,
        };
        if let [only] = self.steps.as_slice() {
            if let Some(pattern) = only.isolated_pattern() {
                return pattern.split(text, |range| piece(whole.with_range(range)));
            }
        }
        run(&self.steps, whole, aligned, &mut piece).map(|_| ())
    }

    /// The last position in `text[from..]` where a piece always ends, whatever precedes and follows, and where `allowed` holds
    /// for the characters on both sides.
    pub fn last_safe_cut(
        &self,
        text: &str,
        from: usize,
        allowed: impl Fn(char, char) -> bool,
    ) -> Option<usize> {
        if !self.may_be_cut() {
            return None; // without a look at each character
        }
        let mut chars = text[from..].char_indices().rev();
        let (mut at, mut after) = chars.next()?;
        for (index, before) in chars {
            if is_safe_cut(&self.steps, u32::from(before), u32::from(after))
                && allowed(before, after)
            {
                return Some(from + at);
            }
            (at, after) = (index, before);
        }
        None
    }

    /// Whether [`PreTokenizers::last_safe_cut`] can find a position.
    pub fn may_be_cut(&self) -> bool {
        let first = self.steps.first();
        first.is_some_and(|step| step.automaton().is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pretokenize::{Behavior, Metaspace, PreTokenizer, Prepend, Split};
    use proptest::prelude::*;

    fn split(steps: &[PreTokenizer], text: &str) -> Vec<String> {
        let mut pieces = Vec::new();
        PreTokenizers::new(steps)
            .unwrap()
            .split(text.as_bytes(), &OffsetMap::original(0), true, |piece| {
                pieces.push(String::from_utf8_lossy(&piece.text[piece.range]).into_owned());
                true
            })
            .unwrap();
        pieces
    }

    fn with(behavior: Behavior, invert: bool) -> [PreTokenizer; 1] {
        [PreTokenizer::Split(Split {
            pattern: "-".to_owned(),
            behavior,
            invert,
        })]
    }

    #[test]
    fn each_behavior_is_that_of_the_library() {
        let text = "the-final--countdown-";
        for (behavior, pieces) in [
            (Behavior::Isolated, "the|-|final|-|-|countdown|-"),
            (Behavior::Removed, "the|final|countdown"),
            (Behavior::MergedWithPrevious, "the-|final-|-|countdown-"),
            (Behavior::MergedWithNext, "the|-final|-|-countdown|-"),
            (Behavior::Contiguous, "the|-|final|--|countdown|-"),
        ] {
            assert_eq!(split(&with(behavior, false), text).join("|"), pieces);
        }
        assert_eq!(
            split(&with(Behavior::Removed, true), text).join("|"),
            "-|-|-|-"
        );
        assert_eq!(
            split(&with(Behavior::MergedWithPrevious, true), text).join("|"),
            "the|-final|-|-countdown|-"
        );
    }

    #[test]
    fn metaspace_prepends_where_it_is_told() {
        let metaspace = |prepend, split| {
            PreTokenizer::Metaspace(Metaspace {
                replacement: '▁',
                prepend,
                split,
            })
        };
        let on_dashes = PreTokenizer::isolated("-");
        for (prepend, split_too, pieces) in [
            (Prepend::Always, true, "▁a|▁b|▁-|▁c|▁▁d"),
            (Prepend::First, true, "▁a|▁b|-|c|▁|▁d"),
            (Prepend::Never, false, "a▁b|-|c▁▁d"),
        ] {
            let steps = [on_dashes.clone(), metaspace(prepend, split_too)];
            let expected = pieces.replace("▁▁d", if split_too { "▁|▁d" } else { "▁▁d" });
            assert_eq!(split(&steps, "a b-c  d").join("|"), expected);
        }
        assert_eq!(split(&[metaspace(Prepend::Always, true)], " a"), ["▁a"]);
    }

    #[test]
    fn a_pattern_may_look_at_printable_characters() {
        let steps = [PreTokenizer::SplitBytes(Split {
            pattern: r"\p{N}+".to_owned(),
            behavior: Behavior::Isolated,
            invert: false,
        })];
        // ² is C2 B2, written Â², and its second half is a number.
        let mut ranges = Vec::new();
        PreTokenizers::new(&steps)
            .unwrap()
            .split(
                "a 12²".as_bytes(),
                &OffsetMap::original(0),
                false,
                |piece| {
                    ranges.push(piece.range);
                    true
                },
            )
            .unwrap();
        assert_eq!(ranges, [0..2, 2..4, 4..5, 5..6]);
    }

    #[test]
    fn what_the_steps_allow_is_known() {
        let metaspace = |prepend| {
            PreTokenizer::Metaspace(Metaspace {
                replacement: '▁',
                prepend,
                split: true,
            })
        };
        let words = PreTokenizer::isolated(r"\w+|\W");
        let [removed] = with(Behavior::Removed, false);
        for (steps, has_blocks, may_be_cut, needs_offsets) in [
            (vec![], false, false, false),
            (vec![words.clone()], true, true, false),
            (vec![words.clone(), words.clone()], true, true, false),
            (vec![PreTokenizer::isolated("(?<=a)b")], false, false, false),
            (vec![words.clone(), removed.clone()], false, true, false),
            (vec![removed], false, false, false),
            (
                vec![words.clone(), metaspace(Prepend::Always)],
                false,
                true,
                false,
            ),
            (vec![words, metaspace(Prepend::First)], false, true, true),
        ] {
            let pre_tokenizers = PreTokenizers::new(&steps).unwrap();
            assert_eq!(pre_tokenizers.has_blocks(), has_blocks, "{steps:?}");
            assert_eq!(pre_tokenizers.may_be_cut(), may_be_cut, "{steps:?}");
            assert_eq!(pre_tokenizers.needs_offsets(), needs_offsets, "{steps:?}");
            let cut = pre_tokenizers.last_safe_cut("ab cd", 0, |_, _| true);
            assert_eq!(cut, may_be_cut.then_some(3), "{steps:?}");
        }
    }

    const WORDS: &str = r"'s| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+";

    #[test]
    fn a_text_may_be_cut_where_a_piece_always_ends() {
        let words = PreTokenizers::of_patterns(&[WORDS.to_owned()]).unwrap();
        for (text, from, avoided, cut) in [
            ("ab cd  ef", 0, None, Some(5)),
            ("ab cd  ef", 3, None, Some(5)),
            ("ab cd  ef", 4, None, Some(5)),
            ("ab cd  ef", 5, None, None),
            ("ab cd  ef", 0, Some('d'), Some(2)),
            ("ab cd  ef", 2, Some('d'), None),
            ("é日 b", 0, None, Some(5)),
            ("é日 b", 2, None, Some(5)),
            ("'s", 0, None, None),
            ("x's", 0, None, Some(1)),
            ("a1", 0, None, Some(1)),
            ("a", 0, None, None),
            ("", 0, None, None),
        ] {
            let found = words.last_safe_cut(text, from, |before, _| Some(before) != avoided);
            assert_eq!(found, cut, "{text:?} from {from}");
        }
    }

    #[test]
    fn a_text_is_cut_where_no_step_decides_later() {
        for (patterns, text, cut) in [
            (&["ab|a"][..], "ab", None),
            (&["b"], "ab", None),
            (&["a(?!$)"], "ab", None),
            (&["a+?"], "ba", None),
            (&["xab|a"], "ab", None),
            (&["a$|b"], "ab", None),
            (&["a|b"], "ab", Some(1)),
            (&[r"\p{N}{1,3}", WORDS], "ab cd", Some(2)),
            (&[r"\p{N}{1,3}", WORDS], "12 ab", Some(2)),
            (&[r"\p{N}{1,3}", WORDS], "1234", None),
            (&["b+", "a|b"], "ab", Some(1)), // whether `b` begins a piece of the first or of the second
            (&["ab", "a|b"], "ab", None),
            (&["c(?=ab)", "a|b"], "ab", None), // the look-ahead reads both
            (&[r"\p{N}", r"(?<=a)b"], "ab", None),
        ] {
            let patterns = patterns.iter().map(|&each| each.to_owned());
            let steps = PreTokenizers::of_patterns(&patterns.collect::<Vec<_>>()).unwrap();
            assert_eq!(steps.last_safe_cut(text, 0, |_, _| true), cut, "{text}");
        }
    }

    proptest! {
        #[test]
        fn the_sides_of_a_cut_have_the_pieces_of_the_whole(text in "[a-c1-3 .\n'sé語]{0,12}") {
            for patterns in [
                &[WORDS][..],
                &[r"\p{N}{1,3}", "[語]+", WORDS],
                &["c(?=ab)|b(?!c)", r"\s+(?!\S)|a+", WORDS],
                &["ab+|1{2}", "b|c+"],
            ] {
                let steps: Vec<_> = patterns.iter().copied().map(PreTokenizer::isolated).collect();
                let compiled = PreTokenizers::new(&steps).unwrap();
                let whole = split(&steps, &text);
                let mut rest = text.as_str();
                while let Some(cut) = compiled.last_safe_cut(rest, 0, |_, _| true) {
                    let mut sides = split(&steps, &text[..cut]);
                    sides.extend(split(&steps, &text[cut..]));
                    prop_assert_eq!(&sides, &whole, "{:?} at {} by {:?}", text, cut, patterns);
                    rest = &rest[..cut];
                }
            }
        }
    }
}
