//! Full text: the words of a text, made the same for both databases, and how each of them looks for words.
//!
//! Texts are folded by compatibility (NFKC), letter case and accents. Letters and digits that stand together are a
//! word. Scripts without spaces between words (Chinese, Japanese, Korean, Thai, …) are cut into pairs of neighbouring
//! characters; a text also holds each character alone, so that one character can be looked for as well.
//!
//! A search finds the texts that hold all of its words, in any order.

use std::collections::HashSet;

use unicode_general_category::{GeneralCategory, get_general_category};
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::canonical_combining_class;

use crate::Dialect;

/// Longer words are cut, in texts and in searches alike: PostgreSQL's index takes no entry of 2.7 KB.
const WORD_MAX_CHARACTERS: usize = 64;

/// What a text is found by: each word once.
pub fn text_words(text: &str) -> Vec<String> {
    words(text, true)
}

/// What is looked for: each word once. Always among the [`text_words`] of the same text.
pub fn query_words(text: &str) -> Vec<String> {
    words(text, false)
}

/// The condition that `column` of the memories under the alias `m` holds all words given at the placeholder `?number`.
pub(crate) fn condition(dialect: Dialect, number: usize) -> String {
    match dialect {
        Dialect::Sqlite => {
            format!("m.key IN (SELECT rowid FROM memories_search WHERE memories_search MATCH ?{number})")
        }
        // The words are compared as they are. A tsvector would part some of them again, depending on the locale.
        Dialect::Postgres => {
            format!("string_to_array(m.search_text, ' ') @> string_to_array(CAST(?{number} AS TEXT), ' ')")
        }
    }
}

/// What to give to that placeholder.
pub(crate) fn parameter(dialect: Dialect, words: &[String]) -> String {
    match dialect {
        // A word holds letters, digits and marks only, so no quote; quoted, AND and OR are words like others.
        Dialect::Sqlite => words.iter().map(|word| format!("\"{word}\"")).collect::<Vec<_>>().join(" "),
        Dialect::Postgres => words.join(" "),
    }
}

/// What a character does to the word that it stands in.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Belongs to a word that spaces end.
    Letter,
    /// A word by itself, or with its neighbour.
    Dense,
    /// Belongs to the character before.
    Mark,
    /// Ends a word.
    Gap,
}

fn kind(c: char) -> Kind {
    use GeneralCategory as G;
    match get_general_category(c) {
        G::NonspacingMark | G::SpacingMark | G::EnclosingMark => Kind::Mark,
        G::UppercaseLetter
        | G::LowercaseLetter
        | G::TitlecaseLetter
        | G::ModifierLetter
        | G::OtherLetter
        | G::DecimalNumber
        | G::LetterNumber
        | G::OtherNumber => {
            if is_dense(c) {
                Kind::Dense
            } else {
                Kind::Letter
            }
        }
        _ => Kind::Gap,
    }
}

/// Whether it is of a script that is written without spaces between words.
fn is_dense(c: char) -> bool {
    matches!(c,
        '\u{0e00}'..='\u{0eff}'       // Thai, Lao
        | '\u{1000}'..='\u{109f}'     // Myanmar
        | '\u{1100}'..='\u{11ff}'     // Hangul letters
        | '\u{1780}'..='\u{17ff}'     // Khmer
        | '\u{2e80}'..='\u{2fdf}'     // Han radicals
        | '\u{3005}'..='\u{3007}' | '\u{3021}'..='\u{3029}' | '\u{3031}'..='\u{303c}'
        | '\u{3040}'..='\u{31ff}'     // kana, Bopomofo, Hangul letters
        | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' // Han
        | '\u{a000}'..='\u{a4cf}'     // Yi
        | '\u{a960}'..='\u{a97f}' | '\u{ac00}'..='\u{d7ff}' // Hangul
        | '\u{a9e0}'..='\u{a9ff}' | '\u{aa60}'..='\u{aa7f}' // Myanmar
        | '\u{f900}'..='\u{faff}'     // Han
        | '\u{1aff0}'..='\u{1b2ff}'   // kana, Nüshu
        | '\u{20000}'..='\u{3ffff}'   // Han
    )
}

/// Folds compatibility, case and accents. Folding twice changes nothing more.
fn folded(text: &str) -> String {
    let bare = text.nfkd().filter(|c| !is_accent(*c) && !is_ignorable(*c));
    bare.flat_map(without_stroke).flat_map(without_case).nfc().collect()
}

/// Marks above, below and through a letter, and the points of Hebrew and Arabic: what differs between spellings of a
/// word. Vowel signs and viramas, which make other words, have other classes; so has the iota subscript, which is a
/// letter in upper case.
fn is_accent(c: char) -> bool {
    let class = canonical_combining_class(c);
    class == 1 || (10..=36).contains(&class) || (200..=239).contains(&class)
}

/// What nobody sees: joiners, soft hyphens, variation selectors.
fn is_ignorable(c: char) -> bool {
    get_general_category(c) == GeneralCategory::Format
        || matches!(c,
            '\u{34f}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}' | '\u{180b}'..='\u{180f}'
            | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{ffa0}' | '\u{e0100}'..='\u{e01ef}')
}

/// Letters whose accent Unicode does not take apart.
fn without_stroke(c: char) -> impl Iterator<Item = char> {
    let (first, second) = match c {
        'ø' | 'Ø' => ('o', None),
        'ł' | 'Ł' => ('l', None),
        'đ' | 'Đ' => ('d', None),
        'ħ' | 'Ħ' => ('h', None),
        'ŧ' | 'Ŧ' => ('t', None),
        'æ' | 'Æ' => ('a', Some('e')),
        'œ' | 'Œ' => ('o', Some('e')),
        _ => (c, None),
    };
    std::iter::once(first).chain(second)
}

/// Lower case by way of upper case, which brings ß, ss and SS together, and the two small sigmas.
fn without_case(c: char) -> impl Iterator<Item = char> {
    c.to_lowercase().flat_map(char::to_uppercase).flat_map(char::to_lowercase)
}

/// Characters that belong together.
enum Run {
    /// A word.
    Letters(String),
    /// Neighbours of a script without spaces, each with its marks.
    Dense(Vec<String>),
}

/// Takes a folded text apart. A mark without a character before it is dropped.
fn runs(text: &str) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    let mut before = Kind::Gap;
    for c in text.chars() {
        let kind = match kind(c) {
            Kind::Mark => {
                match runs.last_mut().filter(|_| before != Kind::Gap) {
                    Some(Run::Letters(word)) => word.push(c),
                    Some(Run::Dense(characters)) => characters.last_mut().into_iter().for_each(|last| last.push(c)),
                    None => {}
                }
                continue;
            }
            kind => kind,
        };
        match (kind, runs.last_mut().filter(|_| kind == before)) {
            (Kind::Letter, Some(Run::Letters(word))) => word.push(c),
            (Kind::Letter, _) => runs.push(Run::Letters(c.into())),
            (Kind::Dense, Some(Run::Dense(characters))) => characters.push(c.into()),
            (Kind::Dense, _) => runs.push(Run::Dense(vec![c.into()])),
            (Kind::Mark | Kind::Gap, _) => {}
        }
        before = kind;
    }
    runs
}

/// The words of a text, each once, in the order in which they first came. `singles`: with each character of a script
/// without spaces, even where it has neighbours.
fn words(text: &str, singles: bool) -> Vec<String> {
    let mut seen = HashSet::new();
    let mut found = Vec::new();
    let mut add = |word: &str| {
        let cut = word.char_indices().nth(WORD_MAX_CHARACTERS).map_or(word, |(end, _)| &word[..end]);
        if seen.insert(cut.to_owned()) {
            found.push(cut.to_owned());
        }
    };
    for run in runs(&folded(text)) {
        match run {
            Run::Letters(word) => add(&word),
            Run::Dense(characters) => {
                if singles || characters.len() == 1 {
                    characters.iter().for_each(|one| add(one));
                }
                characters.windows(2).for_each(|pair| add(&pair.concat()));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn set(words: Vec<String>) -> BTreeSet<String> {
        words.into_iter().collect()
    }

    #[test]
    fn spellings_of_a_word_are_one() {
        for (spellings, word) in [
            (&["Café", "CAFÉ", "cafe", "Cafe\u{301}", "ｃａｆｅ"][..], "cafe"),
            (&["Straße", "STRASSE", "STRAẞE", "strasse"], "strasse"),
            (&["Ὀδυσσεύς", "ΟΔΥΣΣΕΥΣ", "οδυσσευσ"], "οδυσσευσ"),
            (&["Łódź", "lodz"], "lodz"),
            (&["Ærø", "aero"], "aero"),
            (&["ﬁle", "FILE", "fi\u{ad}le", "fi\u{200d}le"], "file"),
            (&["Ⅻ", "xii"], "xii"),
            (&["İstanbul", "ISTANBUL", "ıstanbul"], "istanbul"),
            (&["кафе\u{301}", "КАФЕ"], "кафе"),
            (&["שָׁלוֹם", "שלום"], "שלום"),
            (&["1e5x"], "1e5x"),
        ] {
            for spelling in spellings {
                assert_eq!(query_words(spelling), [word], "{spelling:?}");
            }
        }
    }

    #[test]
    fn words_end_at_whatever_is_no_letter_or_digit() {
        assert_eq!(
            text_words("foo-bar, foo_BAR! a.b@c \u{1f680} 3.14 \u{301}x"),
            ["foo", "bar", "a", "b", "c", "3", "14", "x"]
        );
        assert!(text_words(" \n\u{1f680}!?\u{301}").is_empty());
        // Vowel signs make other words.
        assert_ne!(query_words("कु"), query_words("क"));
        assert_eq!(query_words("नमस्ते दुनिया"), ["नमस्ते", "दुनिया"]);
    }

    #[test]
    fn scripts_without_spaces_are_cut_into_pairs() {
        assert_eq!(query_words("東京都"), ["東京", "京都"]);
        assert_eq!(text_words("東京都"), ["東", "京", "都", "東京", "京都"]);
        assert_eq!(query_words("猫"), ["猫"]);
        assert_eq!(query_words("ｶﾞｷﾞ がき"), ["ガギ", "がき"]);
        assert_eq!(query_words("東京Tower 3階"), ["東京", "tower", "3", "階"]);
        assert_eq!(query_words("서울시"), ["서울", "울시"]);
        assert_eq!(query_words("ภาษา"), ["ภา", "าษ", "ษา"]);
    }

    #[test]
    fn long_words_are_cut_alike_everywhere() {
        let long = "x".repeat(10_000);
        assert_eq!(query_words(&long), ["x".repeat(WORD_MAX_CHARACTERS)]);
        assert_eq!(query_words(&long), text_words(&long));
    }

    #[test]
    fn every_character_folds_once_and_for_all() {
        // Most of Han and Hangul is alike, and what is private or not assigned folds to itself.
        let alike = |c: &char| {
            matches!(c, '\u{3500}'..='\u{9fff}' | '\u{ad00}'..='\u{d7ff}' | '\u{e000}'..='\u{f8ff}' | '\u{17000}'..='\u{18fff}'
                | '\u{20100}'..='\u{2f7ff}' | '\u{2fb00}'..='\u{dffff}' | '\u{e0200}'..)
        };
        for c in ('\0'..=char::MAX).filter(|c| !alike(c)) {
            let text = format!("a{c}b");
            let once = folded(&text);
            assert_eq!(folded(&once), once, "U+{:04X}", u32::from(c));
            let words = query_words(&text);
            assert_eq!(query_words(&words.join(" ")), words, "U+{:04X}", u32::from(c));
        }
    }

    fn check(text: &str) -> Result<(), TestCaseError> {
        let (stored, searched) = (text_words(text), query_words(text));
        for word in &stored {
            prop_assert!(!word.is_empty() && word.chars().count() <= WORD_MAX_CHARACTERS);
            prop_assert!(!word.contains(|c: char| c == '"' || c.is_whitespace() || c.is_control()), "{word:?}");
        }
        prop_assert_eq!(set(text_words(&stored.join(" "))), set(stored.clone()), "not idempotent");
        prop_assert_eq!(&query_words(&searched.join(" ")), &searched, "not idempotent");
        prop_assert!(set(searched).is_subset(&set(stored.clone())), "a text does not find itself");
        for part in text.split_whitespace() {
            prop_assert!(set(query_words(part)).is_subset(&set(stored.clone())), "{part:?} does not find its text");
        }
        let text: String = text.nfkd().collect();
        prop_assert_eq!(set(text_words(&text.to_uppercase())), set(text_words(&text.to_lowercase())), "case matters");
        Ok(())
    }

    proptest! {
        #[test]
        fn any_text_gives_words_that_stay(text in any::<String>()) {
            check(&text)?;
        }

        #[test]
        fn texts_of_difficult_characters_do_too(
            text in "[a-zA-ZäÉßẞſİıøÆﬁ½Ⅻ0-9 \\-_'\u{300}-\u{345}\u{e00}-\u{e5b}\u{1100}-\u{11ff}가-힣ぁ-ヿ゙゚一-丏ｦ-ﾟ\u{200b}-\u{200f}\u{fe0f}\u{900}-\u{95f}\u{590}-\u{5f4}]{0,80}"
        ) {
            check(&text)?;
        }
    }
}
