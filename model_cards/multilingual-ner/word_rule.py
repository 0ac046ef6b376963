r"""The rule by which raw text becomes words, as one Oniguruma regular expression.

``WORD_PATTERN`` matches a word; the text between two matches is blank and is dropped::

    pre_tokenizers.Split(Regex(WORD_PATTERN), behavior="removed", invert=True)

The rule follows the words of CoNLL-2003 and WNUT 2017 where the two agree, else the Penn convention (``do n't``,
``it 's``). It expects cased text. Three promises hold for any text:

- every character that is not blank (Unicode White_Space, the ``\s`` of Oniguruma) lies in exactly one word;
- no word contains a blank, and none begins with a combining mark that can be combined with the character before it;
- the time is linear in the length of the text. Unlimited repetitions are possessive (``++``, ``*+``) and never read a
  character twice; repetitions that may fail late are bounded (``{1,64}``). Oniguruma reads ``{n,m}+`` as a repeated
  repetition, not as a possessive one, hence the groups ``(?>...)``. It also panics after ten million failed steps
  within one match. Repeated groups take a few such steps at each turn, so they are bounded, and an endless "word" is
  cut in pieces; repeated characters take none.

Writing systems without blanks between words: each character of Han and Hiragana is a word, as names are spelt in both;
a run of Katakana is one word, since it is mostly one loanword or name, and a middle dot separates two; Hangul has
blanks and is read like Latin; Thai, Lao, Khmer and Burmese would need a dictionary and are only split at blanks.

The module imports nothing, so that it can be saved with the weights.
"""

# --- Characters ------------------------------------------------------------------------------------------------------

# Scripts written without blanks, kept out of the ordinary word; with the prolonged sound and half-width voicing marks,
# which Unicode shares between the two syllabaries.
_KATAKANA = r"\p{Katakana}\x{30FC}\x{FF70}\x{FF9E}\x{FF9F}"
_UNSPACED = r"\p{Han}\p{Hiragana}" + _KATAKANA

# A letter that may be an initial.
_ALPHA = r"[\p{L}&&[^" + _UNSPACED + r"]]"

# A letter, digit or underscore: these decide whether the neighbouring character is inside a word.
_ALNUM = r"[[\p{L}\p{N}_]&&[^" + _UNSPACED + r"]]"

# The characters of ordinary words: the same with combining marks (Arabic, Hebrew, Indic vowels), the zero-width
# (non-)joiners of Persian and Indic spelling and the soft hyphen.
_LETTER = r"[[\p{L}\p{M}\p{N}_\x{AD}\x{200C}\x{200D}]&&[^" + _UNSPACED + r"]]"

# Marks, variation selectors and joiners belong to the character before them, punctuation included.
_EXTENDERS = r"[\p{M}\x{200C}\x{200D}]*+"

_APOSTROPHE = r"['\x{2019}]"
_TURNS = r"{0,10000}"  # the bound of repeated groups: far beyond any word, far below the limit of Oniguruma
_WORD_STARTS = r"(?<!" + _ALNUM + r")"
_WORD_ENDS = r"(?!" + _ALNUM + r")"
_AFTER_BLANK = r"(?<!\S)"
_MORE_TEXT_FOLLOWS = r"(?=\s++\S)"

# --- Ordinary words --------------------------------------------------------------------------------------------------

# 's 'm 'd 're 've 'll are words of their own; so is n't, with the n.
_CLITIC = _APOSTROPHE + r"(?i:s|m|d|re|ve|ll)" + _WORD_ENDS
_NOT = r"[nN]" + _APOSTROPHE + r"[tT]" + _WORD_ENDS

# Letters and digits up to n't: where they are followed by 't, one step back gives the "do" of "don't". There is no such
# step where "n't" stands alone.
_PIECE = (
    r"(?>"
    + r"|".join(
        (
            _LETTER + r"++(?!(?<=[nN])" + _APOSTROPHE + r"[tT]" + _WORD_ENDS + r")",
            _LETTER + r"+(?=" + _NOT + r")",
            _LETTER + r"++",
        )
    )
    + r")"
)

# Punctuation inside a word, between two pieces. Each alternative checks that no new word begins after it.
_JOINT = (
    r"(?:"
    + r"|".join(
        (
            r"[-\x{2010}\x{2011}](?=" + _ALNUM + r")",  # all-rounder, 6-4, 1996-08-22
            # 3.5, 1,000, 12:30, 1/2, 12'000, 1914–18; with the Arabic decimal and thousands separators
            r"(?<=\p{Nd})[.,:/'\x{2013}\x{66B}\x{66C}](?=\p{Nd})",
            r"\.(?=[\p{Ll}\p{Nd}])",  # example.com, config.json, No.2
            r"(?<=\p{Lu})\.(?=\p{Lu}" + _WORD_ENDS + r")",  # U.S without its last dot
            r"\.-(?=" + _ALNUM + r")",  # Ill.-based
            r"(?!" + _CLITIC + r")" + _APOSTROPHE + r"(?=\p{L})",  # O'Brien, o'clock, d'affaires
            r"&(?:amp;)?+(?=" + _ALNUM + r")",  # S&P, AT&amp;T
            r"(?<=\p{L})(?:\*++|[$\x{B7}])(?=\p{L})",  # d**n, Ke$ha, col·lega
            r"(?<=\p{Hebrew})[\x{5F3}\x{5F4}\x{22}](?=\p{Hebrew})",  # Hebrew acronyms, with typographic or plain marks
        )
    )
    + r")"
)

# Punctuation at the end of a word: the hyphen of "pre- and post-war", the plus of "18+" and "C++".
_ENDING = r"(?:-(?=[\s.,;:!?)\]]|\z)|\+{1,3}(?![+]|" + _ALNUM + r"))?+"

_WORD = _PIECE + r"(?>(?:" + _JOINT + _PIECE + r")" + _TURNS + r")" + _ENDING

# --- Words with a full stop ------------------------------------------------------------------------------------------

# U.S., a.m., U.S.-led, J.J.Lehto
_INITIALS = _WORD_STARTS + r"(?:" + _ALPHA + r"\p{M}*+\.){2,10000}(?:-?+" + _WORD + r")?+"

# J. Smith, J.Smith; at the end of the text the dot ends the sentence. "I." is the pronoun unless more initials follow.
_INITIAL = (
    _WORD_STARTS
    + r"(?!I\.(?!\s?+\p{Lu}\.))\p{Lu}\p{M}*+\.(?:(?=\p{Lu}\p{L})"
    + _WORD
    + r"|"
    + _MORE_TEXT_FOLLOWS
    + r"|(?=,))"
)

# Abbreviations that are rarely words without their dot; "no", "fig" and "p" are such only before a number. At the end
# of the text the dot ends the sentence.
_ABBREVIATION = (
    _WORD_STARTS
    + r"(?:"
    + r"(?:Mr|Mrs|Ms|Messrs|Dr|Prof|Rev|Hon|Gen|Col|Maj|Lt|Capt|Cmdr|Sgt|Cpl|Sen|Rep|Gov|Pres|Supt"
    r"|St|Ste|Mt|Ft|Jr|Sr|Esq|MR|MRS|MS|DR|ST|JR|SR"
    r"|Inc|Corp|Co|Cos|Ltd|Bros|Assn|Dept|Univ|Ave|Blvd|Rd"
    r"|Jan|Feb|Apr|Aug|Sept|Sep|Oct|Nov|Dec"
    r"|Ala|Ariz|Ark|Calif|Colo|Conn|Fla|Ga|Ill|Ind|Kan|Ky|La|Md|Mich|Minn|Mo|Mont|Neb|Nev|Okla|Ore|Pa|Tenn|Tex|Va|Wis|Wyo"
    r"|[Vv]s|[Vv]ol|[Ee]tc|[Aa]pprox|cf|dept|ft)\."
    + r"(?=[,;:)'\x{2019}\p{Lu}]|\s++\S)"
    + r"|(?:[Nn]os?+|[Ff]igs?+|pp?+)\.(?=\s\p{Nd})"
    + r")"
)

# "2." before a name in a list of results: only at the start of a line, elsewhere it ends a sentence.
_LIST_NUMBER = r"(?<![^\n\r])\p{Nd}{1,3}\.(?=\s++\S)"

# --- Words that begin with a sign ------------------------------------------------------------------------------------

# +3, -2, .5; a minus only where no range or compound can be meant.
_SIGN = r"(?:" + _WORD_STARTS + r"[+\x{B1}]|(?<![^\s(\[])[-\x{2212}])"
_NUMBER = r"(?:" + _SIGN + r"\.?+|(?<![.])" + _WORD_STARTS + r"\.)(?=\p{Nd})" + _WORD

# 'em, 'til, '90s: an apostrophe that opens no quotation.
_CLIPPED = _WORD_STARTS + _APOSTROPHE + r"(?:(?i:em|til|cause|cuz|bout|tis|twas)|\p{Nd}{2}s?+)" + _WORD_ENDS

# US$, C$ before an amount or alone; $AAPL.
_DOLLAR = _WORD_STARTS + r"(?:\p{Lu}{1,3}\$(?!\p{L})|\$\p{Lu}{1,5}" + _WORD_ENDS + r")"

# C#, F#
_SHARP = _WORD_STARTS + r"[A-Z]#" + _WORD_ENDS

# AC/DC, w/o, n/a, w/; a slash separates longer words, and in many other scripts two letters are a whole word.
_BRIEF = r"[\p{Latin}\p{Greek}\p{Cyrillic}]{1,2}"
_SLASHED = _WORD_STARTS + r"(?:" + _BRIEF + r"/" + _BRIEF + r"(?!/|" + _ALNUM + r")|[wW]/(?!/))"

# --- Addresses, names and tags of the internet -----------------------------------------------------------------------

# The characters of an address. Scripts without blanks end it, and so do HTML entities of brackets and quotation marks.
# Punctuation belongs to it only if more of the address follows.
_ADDRESS_CHARACTER = r"[[\p{L}\p{M}\p{N}/_~#%=+$@{}-]&&[^" + _UNSPACED + r"]]"
_ADDRESS = (
    r"(?>(?:"
    + _ADDRESS_CHARACTER
    + r"++"
    + r"|&(?!(?:quot|lt|gt|#39);)"
    + r"|\([^\s()]*+\)"  # .../Java_(island)
    + r"|[.,:;!?*|\\^'\x{2019}()\[\]\x{2026}]++(?="
    + _ADDRESS_CHARACTER
    + r"|&)"
    + r")"
    + _TURNS
    + r")"
)
_URL = r"(?i:(?:https?|ftps?)://|www\.(?=" + _ALNUM + r"))" + _ADDRESS

# t.co/abc: a lower-case host with a path. Hosts without one are ordinary words with inner dots.
_HOST = r"(?>[a-z0-9-]{1,63})(?:\.(?>[a-z0-9-]{1,63})){0,4}\.[a-z]{2,18}"
_BARE_URL = _WORD_STARTS + r"(?=[a-z0-9])" + _HOST + r"/" + _ADDRESS

_EMAIL = (
    _WORD_STARTS
    + r"(?=[A-Za-z0-9])(?>[A-Za-z0-9._%+-]{1,64})@(?>[A-Za-z0-9-]{1,63})"
    + r"(?:\.[A-Za-z0-9](?>[A-Za-z0-9-]{0,62})){1,5}"
)

# @name and #tag, with the full-width signs; a tag may be written in any script.
_NAME_OR_TAG = r"[@\x{FF20}]" + _LETTER + r"++|[#\x{FF03}][\p{L}\p{M}\p{N}_\x{200C}\x{200D}]++"

# r/name and /u/name of Reddit.
_SUBREDDIT = r"(?<![/])" + _WORD_STARTS + r"/?+[ru]/[A-Za-z0-9_]++"

# &amp; &#39;, as found in tweets; &lt;3 is a heart.
_HTML_ENTITY = r"&lt;/?+3++" + _WORD_ENDS + r"|&(?:[A-Za-z]{2,8}|#[0-9]{2,6}|#x[0-9A-Fa-f]{2,6});"

# --- Emoticons and emoji ---------------------------------------------------------------------------------------------

_EMOTICON = r"|".join(
    (
        r"</?+3++" + _WORD_ENDS,  # <3, </3
        # :) ;-) :'( =) also right after a word; an opening bracket as a mouth must not be followed by a letter
        r"[<>]?+[:;][-^o'\x{2019}]{0,2}(?:\)++|[(\[{]++" + _WORD_ENDS + r"|[\\/|*@](?![\\/|*@]|" + _ALNUM + r"))",
        # :D ;P :3 and all with = for eyes only at the start of a word: "Name:D" and "x=(" are no emoticons
        _WORD_STARTS + r"[<>]?+[:;=][-^o'\x{2019}]{0,2}(?:D++|P++|p++|[OoSsXx3])" + _WORD_ENDS,
        _WORD_STARTS + r"=[-^]?+(?:\)++|[(\]/\\|](?![/\\|]|" + _ALNUM + r"))",
        _AFTER_BLANK + r"[:;]-?+\]++",
        _WORD_STARTS + r"[8B]-\)++",
        _AFTER_BLANK + r"\(++[-^]?+[:;=]" + _WORD_ENDS,  # (:
        r"[-=.;*^<>\x{B0}@$]_++[-=.;*^<>\x{B0}@$]" + _WORD_ENDS,  # ^_^ -_- >_< ._.
        r"\^[-.oO]?\^++|>\.<|" + _AFTER_BLANK + r"(?:-\.-|;-;)",
        r"\\[oO]/",
        r"\x{AF}\\_++\(\x{30C4}\)_++/\x{AF}",  # the shrug
    )
)

# One emoji with its skin tone or tags (the flags of Scotland or Wales); joined ones are one word.
_EMOJI_UNIT = r"\p{Extended_Pictographic}[\p{M}\x{1F3FB}-\x{1F3FF}\x{E0020}-\x{E007F}]*+"
_EMOJI = r"|".join(
    (
        r"[\x{1F1E6}-\x{1F1FF}]{2}",  # a flag: two regional indicators
        r"[0-9#*]\x{FE0F}?+\x{20E3}",  # a keycap
        _EMOJI_UNIT + r"(?>(?:\x{200D}" + _EMOJI_UNIT + r")" + _TURNS + r")",
    )
)

# --- Marks -----------------------------------------------------------------------------------------------------------

# Runs that are one word; brackets and double quotation marks are always single.
_RUN = (
    r"[.\x{2026}]{2,}|[!?]{2,}|-{2,}|[\x{2013}\x{2014}]{2,}|\*{2,}|={2,}|~{2,}|/{2,}|\+{2,}|,{2,}|:{2,}|\|{2,}"
    r"|\p{Sc}{2,}|<[-=]{1,2}>?+|[-=]{1,2}>|[<>!]=|''|\x{60}\x{60}"
)

# --- The shortcut ----------------------------------------------------------------------------------------------------

# A run of letters and digits, or any one character, before a blank. All other alternatives would match the same, so
# this changes no word; most words skip the long list, and the rule runs about twice as fast.
_PLAIN = r"(?:[[\p{L}0-9_]&&[^" + _UNSPACED + r"]]++|\S)(?=\s)"

# --- The whole rule --------------------------------------------------------------------------------------------------

# The first alternative that matches wins, so special ones come before general ones; the last one matches any character.
WORD_PATTERN = (
    r"(?:"
    + r"|".join(
        (
            _PLAIN,
            _URL,
            _EMAIL,
            _BARE_URL,
            _SUBREDDIT,
            _EMOJI,
            _EMOTICON,
            _HTML_ENTITY,
            _CLITIC,
            _CLIPPED,
            _NAME_OR_TAG,
            _DOLLAR,
            _SHARP,
            _SLASHED,
            _INITIALS,
            _INITIAL,
            _ABBREVIATION,
            _LIST_NUMBER,
            _NUMBER,
            _WORD,
            r"[" + _KATAKANA + r"]++",
            _RUN,
            r"\S",
        )
    )
    + r")"
    + _EXTENDERS
)
