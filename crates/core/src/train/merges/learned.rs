//! The result of a training run, and the model that it gives.

use crate::error::{Error, Result};
use crate::model::{Model, Settings};
use crate::special::AddedToken;
use rustc_hash::FxHashSet;

/// The learned tokens and merges.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Learned {
    /// Id and bytes of each learned token, oldest first; the ids ascend.
    pub tokens: Vec<(u32, Vec<u8>)>,
    /// Ids of the left part, the right part and the product of each merge: one merge per token.
    pub merges: Vec<(u32, u32, u32)>,
}

impl Learned {
    /// The model of the 256 bytes, the learned tokens and those added tokens whose ids are below
    /// `vocab_size`.
    pub fn into_model(
        self,
        vocab_size: u32,
        settings: Settings,
        added: Vec<AddedToken>,
    ) -> Result<Model> {
        let mut tokens: Vec<(u32, Vec<u8>)> = (0..=255)
            .map(|byte| (u32::from(byte), vec![byte]))
            .collect();
        let inside = added.iter().filter(|token| token.id < vocab_size);
        tokens.extend(inside.map(|token| (token.id, token.content.clone().into_bytes())));
        let merges = self.merges_as_bytes(|id| u8::try_from(id).ok().map(|byte| vec![byte]));
        tokens.extend(self.tokens);
        Model::new(tokens, Some(&merges), settings, added)
    }

    /// A model with the learned tokens and merges after its own.
    pub fn extend(self, model: &Model) -> Result<Model> {
        if self.tokens.is_empty() {
            return Ok(model.clone());
        }
        let vocabulary = model.vocabulary();
        let mut bytes = FxHashSet::default();
        for (id, token) in vocabulary.iter() {
            if model.added_token(id).is_none() && !bytes.insert(token) {
                return Err(Error::Model(
                    "two ids of this vocabulary have the same bytes; merges could mean either"
                        .to_owned(),
                ));
            }
        }
        let own = vocabulary.iter().map(|(id, token)| (id, token.to_vec()));
        let mut tokens: Vec<(u32, Vec<u8>)> = own.collect();
        // Added tokens after the old vocabulary are now among its ids, and files list all ids.
        let added = model.added().iter();
        let outside = added.filter(|token| vocabulary.id(token.content.as_bytes()).is_none());
        tokens.extend(outside.map(|token| (token.id, token.content.clone().into_bytes())));
        let token = |id| vocabulary.token(id).map(<[u8]>::to_vec);
        let own = model.merges().iter();
        let own = own.filter_map(|&(left, right, _)| Some((token(left)?, token(right)?)));
        let mut merges: Vec<_> = own.collect();
        merges.extend(self.merges_as_bytes(token));
        tokens.extend(self.tokens);
        let added = model.added().to_vec();
        Model::new(tokens, Some(&merges), model.settings().clone(), added)
    }

    /// The parts of the merges as bytes; `earlier` has the tokens that were not learned.
    fn merges_as_bytes(&self, earlier: impl Fn(u32) -> Option<Vec<u8>>) -> Vec<(Vec<u8>, Vec<u8>)> {
        let bytes = |id: u32| match self.tokens.binary_search_by_key(&id, |token| token.0) {
            Ok(index) => self.tokens[index].1.clone(),
            // `Learned` holds ids of earlier or learned tokens only.
            Err(_) => earlier(id).unwrap_or_default(),
        };
        let merges = self.merges.iter();
        merges
            .map(|&(left, right, _)| (bytes(left), bytes(right)))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn learned() -> Learned {
        Learned {
            tokens: vec![(258, b"ab".to_vec()), (260, b"abc".to_vec())],
            merges: vec![(97, 98, 258), (258, 99, 260)],
        }
    }

    fn bytes() -> Vec<(u32, Vec<u8>)> {
        (0..=255).map(|byte| (byte, vec![byte as u8])).collect()
    }

    #[test]
    fn a_model_has_the_learned_tokens_and_the_added_ones_below_its_size() {
        let added = [("<s>", 259), ("<e>", 261)];
        let added = added.map(|(content, id)| AddedToken::special(content, id));
        let model = learned().into_model(261, Settings::default(), added.to_vec());
        let model = model.unwrap();
        assert_eq!(model.merges(), learned().merges);
        assert_eq!(model.added(), added);
        let others = model.vocabulary().iter().skip(256);
        let expected: [(u32, &[u8]); 3] = [(258, b"ab"), (259, b"<s>"), (260, b"abc")];
        assert!(others.eq(expected));
    }

    #[test]
    fn an_extended_model_has_its_own_tokens_first() {
        let mut tokens = bytes();
        tokens.extend([(256, b"bc".to_vec()), (257, b"<s>".to_vec())]);
        let added = [("<s>", 257), ("<e>", 259)];
        let added = added.map(|(content, id)| AddedToken::special(content, id));
        let merges = [(b"b".to_vec(), b"c".to_vec())];
        let settings = Settings::default();
        let model = Model::new(tokens, Some(&merges), settings, added.to_vec()).unwrap();
        let larger = learned().extend(&model).unwrap();
        assert_eq!(
            larger.merges(),
            [(98, 99, 256), (97, 98, 258), (258, 99, 260)]
        );
        assert_eq!(larger.added(), added);
        let others = larger.vocabulary().iter().skip(256);
        let expected: [(u32, &[u8]); 5] = [
            (256, b"bc"),
            (257, b"<s>"),
            (258, b"ab"),
            (259, b"<e>"),
            (260, b"abc"),
        ];
        assert!(others.eq(expected));
        let same = Learned::default().extend(&model).unwrap();
        assert_eq!(same.vocabulary().len(), 258);
    }

    #[test]
    fn tokens_of_one_spelling_are_extended_only_if_one_is_added() {
        let extend = |added: Vec<AddedToken>| {
            let mut tokens = bytes();
            tokens.extend([(256, b"xy".to_vec()), (257, b"xy".to_vec())]);
            let model = Model::new(tokens, Some(&[]), Settings::default(), added).unwrap();
            learned().extend(&model).map(|model| model.merges().len())
        };
        assert_eq!(extend(vec![AddedToken::special("xy", 257)]).unwrap(), 2);
        let error = extend(Vec::new()).unwrap_err().to_string();
        assert!(error.contains("two ids"), "{error}");
    }
}
