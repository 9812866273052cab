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
