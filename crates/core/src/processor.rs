//! The processor's vector instructions: detected once, for every part of the core that has a version for
//! each.

use crate::threads::made_once;
use std::sync::OnceLock;

/// A set of vector instructions that the running processor has. A later one includes the earlier ones.
///
/// Only this module makes values of this type, and it makes only those that it detected. A function with
/// `#[target_feature]` is therefore sound to call after a match on a [`Processor`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Processor(InstructionSet);

/// A set of vector instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum InstructionSet {
    /// None: runs on every processor.
    Portable,
    /// NEON of 64-bit ARM.
    #[cfg(target_arch = "aarch64")]
    Neon,
    /// AVX2, BMI1, BMI2, LZCNT and POPCNT.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// AVX-512 F, DQ and BW.
    #[cfg(target_arch = "x86_64")]
    Avx512,
    /// The same with VBMI and VBMI2.
    #[cfg(target_arch = "x86_64")]
    Avx512Vbmi,
}

impl Processor {
    /// Every set that this processor has, the best first.
    pub fn all() -> Vec<Self> {
        #[allow(unused_mut)] // where no other set exists
        let mut all = vec![InstructionSet::Portable];
        #[cfg(target_arch = "aarch64")]
        all.push(InstructionSet::Neon);
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx2")
                && is_x86_feature_detected!("bmi1")
                && is_x86_feature_detected!("bmi2")
                && is_x86_feature_detected!("lzcnt")
                && is_x86_feature_detected!("popcnt")
            {
                all.push(InstructionSet::Avx2);
            }
            if all.len() == 2
                && is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512dq")
                && is_x86_feature_detected!("avx512bw")
            {
                all.push(InstructionSet::Avx512);
            }
            if all.len() == 3
                && is_x86_feature_detected!("avx512vbmi")
                && is_x86_feature_detected!("avx512vbmi2")
            {
                all.push(InstructionSet::Avx512Vbmi);
            }
        }
        all.into_iter().rev().map(Self).collect()
    }

    /// The best set, or the one that the environment variable `BPE_TOKENIZER_SIMD` names.
    ///
    /// The variable is for tests: `portable`, `neon`, `avx2`, `avx512` or `avx512vbmi`. A name that this
    /// processor does not have changes nothing.
    #[inline]
    pub fn best() -> Self {
        static BEST: OnceLock<Processor> = OnceLock::new();
        *made_once(&BEST, || {
            let (all, wanted) = (Self::all(), std::env::var("BPE_TOKENIZER_SIMD"));
            let wanted = wanted.unwrap_or_default();
            let is_wanted = |it: &&Self| format!("{:?}", it.0).eq_ignore_ascii_case(&wanted);
            *all.iter().find(is_wanted).unwrap_or(&all[0])
        })
    }

    /// Whether the processor has these instructions.
    #[inline(always)]
    pub fn has(self, instructions: InstructionSet) -> bool {
        self.0 >= instructions
    }

    /// The best instructions that the processor has.
    #[inline(always)]
    pub fn instructions(self) -> InstructionSet {
        self.0
    }
}
