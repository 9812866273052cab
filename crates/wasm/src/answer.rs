//! The result of a call: parts of memory that the caller copies before its next call.

/// The result of a call. The first number is 0 for success, 1 for an error whose message is the only part; the second is
/// the number of parts. The address and the size in bytes of each part follow.
#[derive(Debug, Default)]
pub struct Answer {
    words: Vec<usize>,
    /// Memory of parts that no other object of the instance owns.
    bytes: Vec<Vec<u8>>,
    numbers: Vec<Vec<u32>>,
}

impl Answer {
    /// Forgets the previous result.
    pub fn clear(&mut self) {
        self.words.clear();
        self.words.extend([0, 0]);
        self.bytes.clear();
        self.numbers.clear();
    }

    /// Makes an error of the answer.
    pub fn fail(&mut self, message: String) {
        self.clear();
        self.words[0] = 1;
        self.own_bytes(message.into_bytes());
    }

    /// Adds a part that stays in place until the next call.
    pub fn add_bytes(&mut self, part: &[u8]) {
        self.add(part.as_ptr() as usize, part.len());
    }

    /// Adds a part that stays in place until the next call.
    pub fn add_words(&mut self, part: &[u32]) {
        self.add(part.as_ptr() as usize, size_of_val(part));
    }

    /// Adds a part and keeps it.
    pub fn own_bytes(&mut self, part: Vec<u8>) {
        self.add_bytes(&part);
        self.bytes.push(part);
    }

    /// Adds a part and keeps it.
    pub fn own_words(&mut self, part: Vec<u32>) {
        self.add_words(&part);
        self.numbers.push(part);
    }

    fn add(&mut self, address: usize, bytes: usize) {
        self.words.extend([address, bytes]);
        self.words[1] += 1;
    }

    /// What the caller reads first.
    pub fn words(&self) -> &[usize] {
        &self.words
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_replaces_the_parts() {
        let mut answer = Answer::default();
        answer.clear();
        answer.own_words(vec![1, 2, 3]);
        assert_eq!(answer.words()[..2], [0, 1]);
        assert_eq!(answer.words()[3], 12);
        answer.fail("no".to_owned());
        assert_eq!(answer.words()[..2], [1, 1]);
        assert_eq!(answer.words()[3], 2);
    }
}
