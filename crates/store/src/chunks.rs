//! Statements over a list of keys: each is made for one key and for a whole chunk, so that the engines' statement caches
//! hold two texts and not one for each length.

use crate::Param;

/// Most keys that one statement takes; a longer list takes several.
pub(crate) const CHUNK: usize = 100;

/// The two texts of a statement that ends in `IN`: its list starts at placeholder `first`.
pub(crate) fn sized(head: &str, first: usize) -> [String; 2] {
    [1, CHUNK].map(|count| {
        let placeholders: Vec<String> = (first..first + count).map(|n| format!("?{n}")).collect();
        format!("{head}({})", placeholders.join(", "))
    })
}

/// Which of the two texts a chunk of keys takes, and its parameters after those in `before`; a short chunk repeats its
/// last key. `None` for an empty one.
pub(crate) fn parameters<'a>(before: &[Param<'a>], chunk: &[i64]) -> Option<(usize, Vec<Param<'a>>)> {
    let chunk: Vec<Param<'a>> = chunk.iter().map(|key| Param::Int(*key)).collect();
    parameters_of(before, &chunk)
}

/// [`parameters`] of any type.
pub(crate) fn parameters_of<'a>(before: &[Param<'a>], chunk: &[Param<'a>]) -> Option<(usize, Vec<Param<'a>>)> {
    let last = chunk.last()?;
    let (which, size) = if chunk.len() == 1 { (0, 1) } else { (1, CHUNK) };
    let mut values = before.to_vec();
    values.extend_from_slice(chunk);
    values.resize(before.len() + size, *last);
    Some((which, values))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_chunk_repeats_its_last_key() {
        let [one, many] = sized("SELECT 1 FROM t WHERE a = ?1 AND b IN ", 2);
        assert_eq!(one, "SELECT 1 FROM t WHERE a = ?1 AND b IN (?2)");
        assert!(many.ends_with("?100, ?101)"));
        let before = [Param::Int(7)];
        assert_eq!(parameters(&before, &[]), None);
        assert_eq!(parameters(&before, &[1]), Some((0, vec![Param::Int(7), Param::Int(1)])));
        let (which, values) = parameters(&before, &[1, 2, 3]).unwrap();
        assert_eq!((which, values.len(), values[3], values[100]), (1, 101, Param::Int(3), Param::Int(3)));
    }
}
