//! Minimisation of automata with Moore's algorithm (Hopcroft, Motwani and Ullman, "Introduction to Automata
//! Theory, Languages, and Computation", section 4.4).

use rustc_hash::FxHashMap;

/// States grouped by equivalence.
pub struct Partition {
    /// For each state, its group. State 0 is in group 0.
    pub group: Vec<u32>,
    /// For each group, its first state.
    pub first: Vec<usize>,
}

/// Groups the states that no input tells apart.
///
/// `group` holds an initial grouping, for example by the states' outputs. `rename` returns an entry of a
/// row with its target state replaced by that state's group.
pub fn minimise(
    rows: &[Vec<u32>],
    mut group: Vec<u32>,
    rename: impl Fn(u32, &[u32]) -> u32,
) -> Partition {
    let mut groups = 0;
    loop {
        let mut ids: FxHashMap<(u32, Vec<u32>), u32> = FxHashMap::default();
        let mut first = Vec::new();
        let refine = |(state, row): (usize, &Vec<u32>)| {
            let targets = row.iter().map(|&entry| rename(entry, &group)).collect();
            *ids.entry((group[state], targets)).or_insert_with(|| {
                first.push(state);
                first.len() as u32 - 1
            })
        };
        group = rows.iter().enumerate().map(refine).collect();
        if first.len() == groups {
            return Partition { group, first };
        }
        groups = first.len();
    }
}
