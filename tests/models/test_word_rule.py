"""The word rule splits newswire and tweets as expected, covers any text, and takes linear time."""

import re
import time
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Regex
from tokenizers.pre_tokenizers import Split

from hf_xorner import load_corpus
from hf_xorner.models.word_rule import WORD_PATTERN

# Unicode White_Space (PropList.txt), written out: str.isspace also holds for four control characters that are none.
WHITE_SPACE = frozenset(
    "\t\n\x0b\x0c\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029"
    "\u202f\u205f\u3000"
)
SPLITTER = Split(Regex(WORD_PATTERN), behavior="removed", invert=True)


def words(text):
    return [word for word, _ in SPLITTER.pre_tokenize_str(text)]


# --- Examples --------------------------------------------------------------------------------------------------------

# text, then the expected words, separated by spaces
SENTENCES = {
    "plain sentence": ("The baker of Lund sings, sadly.", "The baker of Lund sings , sadly ."),
    "quotes and brackets": ('He said: "(Maybe) [so]!"', 'He said : " ( Maybe ) [ so ] ! "'),
    "typographic quotes": ("“Yes,” said ‘Ana’.", "“ Yes , ” said ‘ Ana ’ ."),
    "case is seen": ("Gen. Oak met the gen. pop", "Gen. Oak met the gen . pop"),
    # addresses
    "url, closing full stop": ("See https://ex.org/a_b?c=1&d=2.", "See https://ex.org/a_b?c=1&d=2 ."),
    "url in brackets": ("(http://ex.org/x)", "( http://ex.org/x )"),
    "url with brackets": ("http://ex.org/Java_(island), ok", "http://ex.org/Java_(island) , ok"),
    "url cut short": ("more at http://ex.org/…", "more at http://ex.org/ …"),
    "url before Japanese": ("http://ex.co/aB1東京", "http://ex.co/aB1 東 京"),
    "url before an entity": ("&quot;http://ex.co/a&quot;", "&quot; http://ex.co/a &quot;"),
    "www": ("Go to www.ex-ample.com!", "Go to www.ex-ample.com !"),
    "bare host with path": ("ex.co/Ab3, m.ex.org/x", "ex.co/Ab3 , m.ex.org/x"),
    "bare host": ("ask shop.example.com.", "ask shop.example.com ."),
    "e-mail": ("Write to ann.lee+x@mail.ex.org.", "Write to ann.lee+x@mail.ex.org ."),
    "subreddit": ("on r/knitting and /u/some_one", "on r/knitting and /u/some_one"),
    # names and tags
    "mentions": (".@ann_lee: @Bo99's hat (@cy)", ". @ann_lee : @Bo99 's hat ( @cy )"),
    "mentions without a blank": ("@ann@bo", "@ann @bo"),
    "tags": ("#FF #Year2020! #東京 #naïve", "#FF #Year2020 ! #東京 #naïve"),
    "lone signs": ("@ # ## a", "@ # # # a"),
    "cashtag": ("buy $ACME now", "buy $ACME now"),
    "html entities": ("Salt &amp; Q&amp;A &#39; &lt;3", "Salt &amp; Q&amp;A &#39; &lt;3"),
    # numbers
    "inner marks": ("3.5 1,000 12:30 6-4 1/2 1,250.75", "3.5 1,000 12:30 6-4 1/2 1,250.75"),
    "dates": ("On 1996-02-30, 2/3/04 and 1914–18.", "On 1996-02-30 , 2/3/04 and 1914–18 ."),
    "signs": ("+3 -2 (-5) .5 +0.25 10-2", "+3 -2 ( -5 ) .5 +0.25 10-2"),
    "list ends": ("1, 2, 3.", "1 , 2 , 3 ."),
    "units": ("7pm, 8-10pm, 12th, 5km 18+", "7pm , 8-10pm , 12th , 5km 18+"),
    "percent": ("up 3.5%", "up 3.5 %"),
    "numbered line": ("2. Bo Ek 3\n3. Cy Ul 4.", "2. Bo Ek 3 3. Cy Ul 4 ."),
    "number at the end of a sentence": ("He is 12. She is 9.", "He is 12 . She is 9 ."),
    "Arabic digits": ("سعر ٣٫٥", "سعر ٣٫٥"),
    # currency
    "currency": ("$5 £1.20 €3,000 ¥7", "$ 5 £ 1.20 € 3,000 ¥ 7"),
    "dollars of other lands": ("US$5, C$ 3", "US$ 5 , C$ 3"),
    "dollar as a letter": ("Ma$ha and B$LL", "Ma$ha and B$LL"),
    # initials and abbreviations
    "initials": ("J. Oak, U.S. and D.C.-based", "J. Oak , U.S. and D.C.-based"),
    "initials before a name": ("J.R.Oak and T.O'Ree", "J.R.Oak and T.O'Ree"),
    "initials end a sentence": ("in the U.S..", "in the U.S. ."),
    "initials without the last dot": ("U.S forces", "U.S forces"),
    "times of day": ("9 a.m. or 9 p.m.", "9 a.m. or 9 p.m."),
    "titles": ("Mr. Oak, Dr. Elm, St.Ives", "Mr. Oak , Dr. Elm , St. Ives"),
    "firms": ("Oak Corp. and Elm Inc.'s heir", "Oak Corp. and Elm Inc. 's heir"),
    "firm at the end": ("She left Oak Corp.", "She left Oak Corp ."),
    "letter at the end": ("He took plan B.", "He took plan B ."),
    "the pronoun I": ("So did I. Then", "So did I . Then"),
    "no. before a number": ("No. 5, No.2 but no. Then", "No. 5 , No.2 but no . Then"),
    # inner hyphens, apostrophes, signs
    "hyphens": ("an all-rounder, chief-of-staff", "an all-rounder , chief-of-staff"),
    "open hyphen": ("pre- and post-war", "pre- and post-war"),
    "apostrophes": ("O'Brien's o'clock d’affaires y'all", "O'Brien 's o'clock d’affaires y'all"),
    "ampersand": ("S&P, R&B & co", "S&P , R&B & co"),
    "slashes": ("AC/DC w/o n/a w/ mum/dad", "AC/DC w/o n/a w/ mum / dad"),
    "masked letters": ("d**n *sighs*", "d**n * sighs *"),
    "code": ("C++, C# and config.json x->y a==b some_name", "C++ , C# and config.json x -> y a == b some_name"),
    # contractions
    "not": ("I don't, can't, WON'T, isn’t", "I do n't , ca n't , WO N'T , is n’t"),
    "clitics": ("I'm you're she's he'd we'll I've IT'S", "I 'm you 're she 's he 'd we 'll I 've IT 'S"),
    "clitics already apart": ("I 'm , do n't , it 's", "I 'm , do n't , it 's"),
    "two in a row": ("shouldn't've", "should n't 've"),
    "plural possessive": ("the bakers' ball", "the bakers ' ball"),
    "clipped words": ("get 'em in the '90s 'til", "get 'em in the '90s 'til"),
    # emoticons
    "smileys": (":) ;-) :-( :'( =) :D :P :/ <3 </3 XD :3 :o", ":) ;-) :-( :'( =) :D :P :/ <3 </3 XD :3 :o"),
    "smileys of the East": ("^_^ -_- >_< T_T o_O ^^ ._.", "^_^ -_- >_< T_T o_O ^^ ._."),
    "smiley after a word": ("thanks:) bye ;)))", "thanks :) bye ;)))"),
    "colons that are no smiley": (
        "Note:(see) Name:Dana (Dana:) x=(1)",
        "Note : ( see ) Name : Dana ( Dana :) x = ( 1 )",
    ),
    "the shrug": (r"so ¯\_(ツ)_/¯", r"so ¯\_(ツ)_/¯"),
    # emoji
    "emoji one by one": ("ha😂😂 ok❤️!", "ha 😂 😂 ok ❤️ !"),
    "joined emoji": ("👩‍👩‍👧‍👦👩🏽‍🚀", "👩‍👩‍👧‍👦 👩🏽‍🚀"),
    "flags": ("🇸🇪🇩🇰 🏴󠁧󠁢󠁳󠁣󠁴󠁿", "🇸🇪 🇩🇰 🏴󠁧󠁢󠁳󠁣󠁴󠁿"),
    "keycaps": ("1️⃣2️⃣#️⃣", "1️⃣ 2️⃣ #️⃣"),
    # runs
    "dots and dashes": ("wait... what -- no — oh…", "wait ... what -- no — oh …"),
    "cries": ("What?! No!!! Yes?", "What ?! No !!! Yes ?"),
    # scripts
    "Chinese": ("我在北京。OK吗?", "我 在 北 京 。 OK 吗 ?"),
    "Japanese": ("トヨタはさくら・ホテル", "トヨタ は さ く ら ・ ホテル"),
    "Korean": ("서울에 비가 온다.", "서울에 비가 온다 ."),
    "Arabic with vowel marks": ("كَتَبَ الوَلَدُ، نعم", "كَتَبَ الوَلَدُ ، نعم"),
    "Persian joiner": ("می\u200cروم خانه", "می\u200cروم خانه"),
    "Hebrew": ('שָׁלוֹם צה"ל צה״ל', 'שָׁלוֹם צה"ל צה״ל'),
    "Hindi": ("क्षमा कीजिए।", "क्षमा कीजिए ।"),
    "Russian": ("Анна-Мария, ул. 5", "Анна-Мария , ул . 5"),
    "decomposed accents": ("cafe\u0301s!\u0301 x", "cafe\u0301s !\u0301 x"),
    "Thai stays whole": ("สวัสดีครับ ไทย", "สวัสดีครับ ไทย"),
}


@pytest.mark.parametrize("name", SENTENCES)
def test_sentences_are_split_into_the_expected_words(name):
    text, expected = SENTENCES[name]
    assert words(text) == expected.split()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "apart", "printed"),
    [("wnut17", 98.1, 91.2), ("conll2003", 98.7, 98.7)],
)
def test_real_sentences_are_split_as_their_annotators_did(corpora, name, apart, printed):
    """In percent of sentences, whose words stand apart, or whose marks follow the word before as they do in print."""
    sentences = load_corpus(name, corpora)["test"]["tokens"][:]
    for pattern, least in (("$^", apart), (r" (?=[.,!?;:)]( |$))", printed)):
        texts = [re.sub(pattern, "", " ".join(tokens)) for tokens in sentences]
        same = sum(words(text) == tokens for text, tokens in zip(texts, sentences, strict=True))
        assert 100 * same / len(sentences) >= least


# --- Any text --------------------------------------------------------------------------------------------------------

# Any character, with more of those that the rule treats specially.
PIECES = st.one_of(
    st.characters(exclude_categories=["Cs"]),
    st.sampled_from(sorted(WHITE_SPACE)),
    st.sampled_from(
        "aAIbcnNtTsS0159.,:;'’\"-–_/@#$&*+=<>()[]!?^…~|\\`%東ひカーㄱ각אשمक्🇸🇪👩🚀❤\u200b\u200c\u200d\u0301\ufe0f\u20e3\xad"
    ),
    st.sampled_from(["http://", "www.", "n't", "'s", ":)", "&amp;", "St.", "No.", "...", "a.b.", "t.co/", "x@y.z"]),
)


@given(st.lists(st.lists(PIECES, max_size=40).map("".join), min_size=10, max_size=10))
def test_words_cover_exactly_the_nonblank_characters(texts):
    for text in texts:
        position = 0
        for word, (start, end) in SPLITTER.pre_tokenize_str(text):
            assert word == text[start:end] != ""
            assert position <= start
            assert WHITE_SPACE.issuperset(text[position:start])
            assert WHITE_SPACE.isdisjoint(word)
            # Marks and joiners belong to the character before them.
            if unicodedata.category(word[0]) in ("Mn", "Mc", "Me") or word[0] == "\u200d":
                assert start == 0 or text[start - 1] in WHITE_SPACE
            position = end
        assert WHITE_SPACE.issuperset(text[position:])


def test_every_character_of_unicode_is_a_word_unless_it_is_blank():
    # all that is assigned but surrogates, which are no text, and the last two planes of private use
    codes = (*range(0xD800), *range(0xE000, 0x34000), *range(0xE0000, 0xE0200))
    characters = [chr(code) for code in codes]
    for first in range(0, len(characters), 4096):
        chunk = characters[first : first + 4096]
        assert words(" ".join(chunk)) == [character for character in chunk if character not in WHITE_SPACE]
    for blank in WHITE_SPACE:
        assert words(f"a{blank}b1{blank}{blank}c") == ["a", "b1", "c"]


# --- Time ------------------------------------------------------------------------------------------------------------

# Each is repeated; those that contain a space are listed below.
UNITS = """
a a. A. a- a+ a@ a.b@ a' a_ a* a& a/ 1. 1, 1: -1 - -= ( ) [ @ # #a & &amp; ' ’ . : :- :) (: < <- ^ _ -_ =_ !? $ A$ + ~*
\\_ \\o/ don't n't 's St. No. w/ r/ www. http:// http://( a.bc/ aa.bb. &lt 東 カ ひ 각 א" 👩🏽 🇸
"""
JOINED_UNITS = ["👩\u200d", "👩\u200d🚀", "\u200d", "\u0301", "a\u0301", "\u200b", "\0", " ", "\n"]
BLANK_UNITS = ["A. ", ". ", "St. ", "\n1.\n", " -1", " (:"]

# Prefix, repeated unit, suffix.
ADVERSARIES = [("", unit, "") for unit in UNITS.split() + JOINED_UNITS + BLANK_UNITS] + [
    ("http://a", ".", ""),
    ("http://a", "(a", ""),
    ("http://", "(", "a"),
    ("A.", " ", "B"),
    ("2.", "\n", "B"),
    ("", "a", "@"),
    ("", "a", "n't"),
    ("-", "_", "a"),
    ("¯\\", "_", "a"),
    ("", "=", ">"),
    (" ", "(", ":a"),
]


def seconds(text):
    start = time.process_time()
    SPLITTER.pre_tokenize_str(text)
    return time.process_time() - start


@pytest.mark.slow
def test_adversarial_texts_take_linear_time():
    length = 20_000
    # "’" is the slowest unit in linear time: 20 times as long as for 1,000 characters; quadratic: 70 times and more
    limit = 60 * min(seconds("’" * 1_000) for _ in range(5))
    for before, unit, after in ADVERSARIES:
        text = before + unit * (length // len(unit)) + after
        # a busy machine can slow one run
        assert any(seconds(text) < limit for _ in range(5)), (before, unit, after)


@pytest.mark.slow  # words of millions of characters
def test_very_long_words_are_whole_up_to_ten_thousand_characters_and_never_an_error():
    for unit in ("x", "é", "к", "x-y", "1,0"):
        long = unit * (10_000 // len(unit))
        assert words(f"a {long} b") == ["a", long, "b"]
    # Oniguruma panics after ten million failed steps within one match, which three million characters can take
    for before in ("", "http://"):
        text = before + "a&" * 1_800_000
        assert "".join(words(text)) == text
