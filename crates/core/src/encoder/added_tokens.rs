//! Which added tokens a call looks for, and the automata that find them.

use crate::error::Result;
use crate::interrupt::Interrupt;
use crate::model::Model;
use crate::special::{AddedToken, Matcher, Permits};
use crate::threads::try_made_once;
use rustc_hash::FxHashSet;
use std::borrow::Cow;
use std::sync::{Arc, Mutex, OnceLock};

/// The number of sets of special tokens whose automata are kept.
const RECENT_SETS: usize = 8;

/// Which special tokens are recognised. Added tokens that are not special always are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Special {
    /// None. Their text is ordinary text.
    #[default]
    None,
    /// All.
    All,
    /// Those with these contents.
    Only(FxHashSet<String>),
}

impl From<FxHashSet<String>> for Special {
    fn from(contents: FxHashSet<String>) -> Self {
        if contents.is_empty() {
            Special::None
        } else {
            Special::Only(contents)
        }
    }
}

impl Special {
    fn contains(&self, token: &AddedToken) -> bool {
        match self {
            Special::None => false,
            Special::All => true,
            Special::Only(contents) => contents.contains(&token.content),
        }
    }
}

/// What a call looks for before the text is split.
#[derive(Clone, Copy)]
pub struct Search<'a> {
    pub matchers: &'a Matchers,
    /// Decides for each token and range of the original text whether it may match. None permits all.
    pub permits: Option<Permits<'a>>,
    /// Whether ranges in the original text must be exact.
    pub aligned: bool,
    /// Stops the search and the normalisation.
    pub interrupt: &'a Interrupt<'a>,
}

impl<'a> Search<'a> {
    /// A search that permits all tokens.
    pub fn new(matchers: &'a Matchers, aligned: bool, interrupt: &'a Interrupt<'a>) -> Self {
        Self {
            matchers,
            permits: None,
            aligned,
            interrupt,
        }
    }
}

/// The two automata of a set of added tokens.
pub struct Matchers {
    /// Searches the original text.
    pub original: Matcher,
    /// Searches the normalised text.
    pub normalized: Matcher,
}

impl Matchers {
    fn new(model: &Model, special: &Special) -> Result<Self> {
        let tokens = model
            .added()
            .iter()
            .filter(|token| !token.special || special.contains(token));
        let (mut normalized, original): (Vec<_>, Vec<_>) =
            tokens.cloned().partition(|token| token.normalized);
        for token in &mut normalized {
            if let Some(form) = model.normal_form(token.id) {
                token.content = form.to_owned();
            }
        }
        normalized.retain(|token| !token.content.is_empty()); // an empty content never matches
        Ok(Self {
            original: Matcher::new(original)?,
            normalized: Matcher::new(normalized)?,
        })
    }

    /// Whether neither automaton has a token.
    pub fn are_empty(&self) -> bool {
        self.original.is_empty() && self.normalized.is_empty()
    }
}

/// The automata of a model, by the choice of special tokens.
pub struct AddedTokens {
    without_special: Arc<Matchers>,
    /// Made by the first call that needs it.
    with_special: OnceLock<Arc<Matchers>>,
    /// The last sets that calls chose, the newest first.
    recent: Mutex<Vec<(FxHashSet<String>, Arc<Matchers>)>>,
}

impl AddedTokens {
    pub fn new(model: &Model) -> Result<Self> {
        Ok(Self {
            without_special: Arc::new(Matchers::new(model, &Special::None)?),
            with_special: OnceLock::new(),
            recent: Mutex::default(),
        })
    }

    /// The automata for a choice of special tokens, built unless they are known.
    pub fn matchers(&self, model: &Model, special: &Special) -> Result<Cow<'_, Arc<Matchers>>> {
        let contents = match special {
            Special::None => return Ok(Cow::Borrowed(&self.without_special)),
            Special::All => {
                let make = || Matchers::new(model, special).map(Arc::new);
                return try_made_once(&self.with_special, make).map(Cow::Borrowed);
            }
            Special::Only(contents) => contents,
        };
        // Never waits: after a fork, a thread that the child lacks may hold the lock for ever.
        let mut recent = self.recent.try_lock().ok();
        let known = recent
            .as_ref()
            .and_then(|recent| recent.iter().find(|(key, _)| key == contents));
        if let Some((_, matchers)) = known {
            return Ok(Cow::Owned(matchers.clone()));
        }
        let matchers = Arc::new(Matchers::new(model, special)?);
        if let Some(recent) = &mut recent {
            recent.truncate(RECENT_SETS - 1);
            recent.insert(0, (contents.clone(), matchers.clone()));
        }
        Ok(Cow::Owned(matchers))
    }
}
