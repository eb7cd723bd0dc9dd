// The external scanner for tree-sitter: line ends, blocks and strings of Relax IR text.
//
// The state between tokens consists of the columns of the open blocks and, inside a string, its quotes. It is the same
// at every line of a block, so that the parser can reuse old nodes there after an edit.
//
// Columns are counted as in Python. A block's column is that of its first line. A block continues while lines are
// indented further than the enclosing block, even if less than its first line: a line that lost a blank does not end
// it.
//
// A single line at a column that no valid program has does not end a block either: see "misplaced lines" below.

#include "tree_sitter/alloc.h"
#include "tree_sitter/parser.h"

#include <string.h>

// The order is that of `externals` in grammar.js.
enum TokenType {
    NEWLINE_0,
    NEWLINE_1,
    NEWLINE_2,
    END_0,
    END_1,
    END_2,
    INDENT,
    DEDENT,
    NO_BLOCK,
    STRAY_INDENT,
    DEFINITION_INDENT,
    NO_COLON,
    COMMA_0,
    COMMA_1,
    COMMA_2,
    STRING_START,
    STRING_CONTENT,
    STRING_END,
    DOUBLE_START,
    DOUBLE_CONTENT,
    SINGLE_START,
    SINGLE_CONTENT,
    CLOSE_PAREN,
    CLOSE_BRACKET,
    CLOSE_BRACE,
    NEVER,
    RECOVERING,
};

// The deepest nesting of blocks, as in rx. A deeper block is parsed as part of the last one.
#define MAX_DEPTH 256

// The largest column; lines further right are treated as if at this column.
#define MAX_COLUMN UINT16_MAX

// A comment belongs to the block of the code after it, if that follows within this many lines.
#define MAX_COMMENT_LINES 64

// Flags of an open string; 0 outside strings.
#define STRING_OPEN 1
#define STRING_DOUBLE 2
#define STRING_TRIPLE 4
#define STRING_RAW 8

typedef struct {
    uint16_t depth;
    uint16_t columns[MAX_DEPTH];
    uint8_t string;
} Scanner;

_Static_assert(1 + 2 * MAX_DEPTH <= TREE_SITTER_SERIALIZATION_BUFFER_SIZE, "the state does not fit");

static inline uint16_t block_column(const Scanner *scanner) {
    return scanner->depth == 0 ? 0 : scanner->columns[scanner->depth - 1];
}

static inline void advance(TSLexer *lexer) { lexer->advance(lexer, false); }

// Returns the column of the block that encloses the innermost one; -1 for the file itself, since no line is left of it.
static inline int32_t outer_column(const Scanner *scanner) {
    if (scanner->depth == 0) return -1;
    return scanner->depth == 1 ? 0 : scanner->columns[scanner->depth - 2];
}

static inline bool is_newline(int32_t c) { return c == '\n' || c == '\r'; }

static inline bool is_word(int32_t c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c > 127;
}

static inline bool is_blank(int32_t c) { return c == ' ' || c == '\t' || c == '\f' || c == 0xFEFF; }

static void pass_newline(TSLexer *lexer, bool leading) {
    bool carriage_return = lexer->lookahead == '\r';
    lexer->advance(lexer, leading);
    if (carriage_return && lexer->lookahead == '\n') lexer->advance(lexer, leading);
}

// Skips blanks and returns the column after them; `leading` blanks are not part of the token.
static uint32_t pass_blanks(TSLexer *lexer, uint32_t column, bool leading) {
    for (;; lexer->advance(lexer, leading)) {
        switch (lexer->lookahead) {
            case ' ': column++; break;
            case '\t': column = (column / 8 + 1) * 8; break;
            case '\f': column = 0; break;
            case 0xFEFF: break;
            default: return column < MAX_COLUMN ? column : MAX_COLUMN;
        }
    }
}

static void pass_line(TSLexer *lexer) {
    while (!is_newline(lexer->lookahead) && !lexer->eof(lexer)) advance(lexer);
}

// Skips blank lines; returns the column of the comment or code after them.
static uint32_t pass_blank_lines(TSLexer *lexer, bool leading) {
    for (;;) {
        uint32_t column = pass_blanks(lexer, 0, leading);
        if (!is_newline(lexer->lookahead)) return column;
        pass_newline(lexer, leading);
    }
}

// Skips blank lines and comments; returns the column of the code after them, 0 at the end of the text.
static uint32_t pass_trivia(TSLexer *lexer, uint32_t column) {
    uint32_t comments = 0;
    for (;;) {
        column = pass_blanks(lexer, column, false);
        if (lexer->lookahead == '#' && comments < MAX_COMMENT_LINES) {
            comments++;
            pass_line(lexer);
        }
        if (lexer->eof(lexer)) return 0;
        if (!is_newline(lexer->lookahead)) return column;
        pass_newline(lexer, false);
        column = 0;
    }
}

// ------------------------------------------------------------------ division of long lists

// Returns the weight of the end of the previous statement: a hash of only the characters that follow. So the same text
// is always divided in the same way, wherever it is and whatever is edited around it. The hash of a decorated
// definition includes enough characters to cover its name.
static int weight(TSLexer *lexer) {
    uint32_t hash = 2166136261u;
    int wanted = 0;
    for (int seen = 0; seen <= wanted && !lexer->eof(lexer); advance(lexer)) {
        if (is_blank(lexer->lookahead) || is_newline(lexer->lookahead)) continue;
        if (seen == 0) wanted = lexer->lookahead == '@' ? 96 : 48;
        hash = (hash ^ (uint32_t)lexer->lookahead) * 16777619u;
        seen++;
    }
    hash ^= hash >> 15;
    hash *= 0x85ebca6bu;
    hash ^= hash >> 13;
    return hash % 1024 == 0 ? 2 : hash % 32 == 0 ? 1 : 0;
}

// Scans a comma. After a parameter (`divides`) it has the weight of the text that follows.
static bool scan_comma(TSLexer *lexer, bool divides) {
    advance(lexer);
    lexer->mark_end(lexer);
    lexer->result_symbol = (TSSymbol)(COMMA_0 + (divides ? weight(lexer) : 0));
    return true;
}

// ------------------------------------------------------------------ lines that start a statement inside brackets

#define WORD_SIZE 12

// Reads a word and returns its length; if it is too long, `word` becomes empty.
static uint32_t read_word(TSLexer *lexer, char word[WORD_SIZE]) {
    uint32_t length = 0;
    for (; is_word(lexer->lookahead); advance(lexer), length++) {
        if (length < WORD_SIZE - 1) word[length] = lexer->lookahead < 128 ? (char)lexer->lookahead : '?';
    }
    word[length < WORD_SIZE ? length : 0] = 0;
    return length;
}

static bool is_one_of(const char *word, const char *const *words) {
    for (; *words; words++) {
        if (strcmp(word, *words) == 0) return true;
    }
    return false;
}

static const char *const STATEMENTS[] = {"def",   "class", "with",  "return",   "pass",   "assert",   "import", "while", "try",
                                         "raise", "del",   "elif",  "break",    "continue", "global", "nonlocal", NULL};
static const char *const HEADERS[] = {"if", "for", "else", "async", NULL};
static const char *const OPERANDS[] = {"and",   "or",    "in",   "is",   "not",  "lambda",
                                       "await", "yield", "None", "True", "False", NULL};
static const char *const CLAUSES[] = {"else", "elif", "except", "finally", NULL};

// Skips the rest of a single-line string; returns whether its closing quote was found.
static bool closes(TSLexer *lexer, int32_t quote) {
    while (lexer->lookahead != quote) {
        bool escape = lexer->lookahead == '\\';
        if (escape) advance(lexer);
        if (lexer->eof(lexer) || (!escape && is_newline(lexer->lookahead))) return false;
        if (is_newline(lexer->lookahead)) {
            pass_newline(lexer, false);
        } else {
            advance(lexer);
        }
    }
    advance(lexer);
    return true;
}

// Skips a single-line string.
static void pass_line_string(TSLexer *lexer) {
    int32_t quote = lexer->lookahead;
    advance(lexer);
    closes(lexer, quote);
}

// Whether the last character of the line, except blanks and comments, is a colon.
static bool ends_with_colon(TSLexer *lexer) {
    int32_t last = 0;
    while (!is_newline(lexer->lookahead) && !lexer->eof(lexer) && lexer->lookahead != '#') {
        int32_t c = lexer->lookahead;
        if (!is_blank(c)) last = c;
        if (c == '"' || c == '\'') {
            pass_line_string(lexer);
        } else {
            advance(lexer);
        }
    }
    return last == ':';
}

// The form of a line after its first word.
typedef struct {
    // Starts like a declaration: `name: …`.
    bool declares;
    // Is an assignment: `name = …`, `name[i], other = …`. A `name=value` without blanks is an argument.
    bool assigns;
    // Closes a bracket that it does not open.
    bool closes;
    // Ends with a comma outside its own brackets.
    bool has_last_comma;
    // Is a call that can only be a statement, not an argument: `R.output(…)`.
    bool states;
} LineShape;

static const char *const STATEMENT_CALLS[] = {"output", "func_attr", "evaluate", "reads", "writes", NULL};

static LineShape line_shape(TSLexer *lexer) {
    LineShape shape = {false, false, false, false, false};
    // Only the first `=` outside brackets can be that of an assignment.
    bool blank = false, decided = false;
    int depth = 0;
    if (lexer->lookahead == '.') {
        char word[WORD_SIZE];
        advance(lexer);
        read_word(lexer, word);
        shape.states = is_one_of(word, STATEMENT_CALLS) && lexer->lookahead == '(';
    }
    for (; is_blank(lexer->lookahead); advance(lexer)) blank = true;
    if (lexer->lookahead == ':') {
        advance(lexer);
        shape.declares = lexer->lookahead != '=';
        if (!shape.declares) advance(lexer);
        blank = false;
    }
    while (!is_newline(lexer->lookahead) && !lexer->eof(lexer) && lexer->lookahead != '#') {
        int32_t c = lexer->lookahead;
        if (!is_blank(c)) shape.has_last_comma = c == ',' && depth == 0;
        if (c == '"' || c == '\'') {
            pass_line_string(lexer);
            blank = false;
            continue;
        }
        advance(lexer);
        switch (c) {
            case '(': case '[': case '{': depth++; break;
            case ')': case ']': case '}':
                if (depth == 0) {
                    shape.closes = decided = true;
                } else {
                    depth--;
                }
                break;
            case '=':
                if (depth == 0) {
                    if (!decided && lexer->lookahead != '=' && blank) shape.assigns = true;
                    decided = true;
                }
                break;
            case '!': case '<': case '>': case ':':
                if (lexer->lookahead == '=') advance(lexer);
                break;
            default: break;
        }
        blank = is_blank(c);
    }
    return shape;
}

// Whether the code line at `column`, inside an unfinished statement, starts a new statement. The rule is that of rx
// (`compiler/syntax/src/line.rs`), so that a forgotten bracket affects one statement in both. `first` is the line's
// first character, `word` its first word, which has been read. `wants_operand`: an operand is expected, after a comma
// or an operator. There a continuation may be at any column, so only lines that cannot be arguments start a statement.
static bool starts_statement(TSLexer *lexer, int32_t first, const char *word, uint32_t column, uint32_t block, bool wants_operand) {
    if (is_one_of(word, STATEMENTS)) return true;
    if (column > block) return false;
    if (!is_word(first)) return first == '@';
    if (strcmp(word, "from") == 0) return true;
    if (is_one_of(word, HEADERS)) return ends_with_colon(lexer);
    if (is_one_of(word, OPERANDS) || (first >= '0' && first <= '9')) return false;
    LineShape shape = line_shape(lexer);
    if (shape.states) return true;
    if (wants_operand) return shape.assigns && !shape.closes && !shape.has_last_comma;
    return column < block || shape.declares || shape.assigns;
}

// ------------------------------------------------------------------ strings

static inline bool is_prefix(int32_t c) { return c > 0 && c < 128 && memchr("rRbBfFuU", (int)c, 8); }

static inline bool may_start_string(int32_t c) { return c == '"' || c == '\'' || is_prefix(c); }

// The most lines, and characters, of code inside a string: with more, its closing quotes are assumed to be missing.
// This much text is reparsed within milliseconds.
#define MAX_CODE_LINES 400
#define MAX_CODE_CHARACTERS 100000

typedef enum { PROSE, CODE, ITEM } LineKind;

// Classifies the line that starts here. ITEM is a decorator, function or class that is not indented further than
// `block`. CODE is a decorator, a statement keyword, or a name that is declared, assigned, called or indexed. PROSE is
// anything else, such as JSON and most text.
static LineKind kind_of_line(TSLexer *lexer, uint32_t block) {
    bool deeper = pass_blanks(lexer, 0, false) > block;
    if (lexer->lookahead == '@') return deeper ? CODE : ITEM;
    if (!is_word(lexer->lookahead) || (lexer->lookahead >= '0' && lexer->lookahead <= '9')) return PROSE;
    char word[WORD_SIZE];
    read_word(lexer, word);
    bool item = strcmp(word, "def") == 0 || strcmp(word, "class") == 0;
    if (item && !deeper && lexer->lookahead == ' ') return ITEM;
    if (is_one_of(word, STATEMENTS) || is_one_of(word, HEADERS)) return CODE;
    pass_blanks(lexer, 0, false);
    return lexer->lookahead > 0 && lexer->lookahead < 128 && memchr(":=.([", (int)lexer->lookahead, 5) ? CODE : PROSE;
}

// Skips the rest of a triple-quoted string; returns whether its closing quotes were found. If they are missing, the
// string must not include the whole rest of the text: inside a block a string may not contain an item, and no string
// may contain too much code.
static bool closes_text(const Scanner *scanner, TSLexer *lexer, int32_t quote) {
    int quotes = 0;
    int lines = 0, characters = 0;
    LineKind line = PROSE;
    while (quotes < 3) {
        int32_t c = lexer->lookahead;
        if (lexer->eof(lexer)) return false;
        quotes = c == quote ? quotes + 1 : 0;
        if (c == '\\') {
            advance(lexer);
            if (lexer->eof(lexer)) return false;
            c = is_newline(lexer->lookahead) ? '\n' : c;
        }
        if (!is_newline(c)) {
            if (line != PROSE && ++characters > MAX_CODE_CHARACTERS) return false;
            advance(lexer);
            continue;
        }
        pass_newline(lexer, false);
        line = kind_of_line(lexer, block_column(scanner));
        if (line == ITEM && scanner->depth > 0) return false;
        if (line != PROSE && ++lines > MAX_CODE_LINES) return false;
    }
    return true;
}

// Scans the opening quotes of a string, if they follow and `word` is a string prefix.
static bool scan_string_start(Scanner *scanner, TSLexer *lexer, const char *word) {
    uint8_t string = STRING_OPEN;
    for (int i = 0; word[i]; i++) {
        if (i == 2 || !is_prefix(word[i])) return false;
        if (word[i] == 'r' || word[i] == 'R') string |= STRING_RAW;
    }
    int32_t quote = lexer->lookahead;
    if (quote != '"' && quote != '\'') return false;
    if (quote == '"') string |= STRING_DOUBLE;
    advance(lexer);
    lexer->mark_end(lexer);
    lexer->result_symbol = STRING_START;
    if (lexer->lookahead == quote) {
        advance(lexer);
        // An empty string, or the first two of three quotes.
        if (lexer->lookahead == quote) {
            advance(lexer);
            lexer->mark_end(lexer);
            if (!closes_text(scanner, lexer, quote)) return true;
            string |= STRING_TRIPLE;
        }
        scanner->string = string;
        return true;
    }
    // An unclosed string is not stored in the state, and ends with its line. So the text after it is scanned with the
    // same state as before the quote was typed.
    if (!closes(lexer, quote)) return true;
    if (string & STRING_RAW) {
        scanner->string = string;
    } else {
        // The parser remembers the quote, so the scanner's state stays unchanged.
        lexer->result_symbol = quote == '"' ? DOUBLE_START : SINGLE_START;
    }
    return true;
}

// Ends the statement of a string that is never closed.
static bool give_up_string(Scanner *scanner, TSLexer *lexer) {
    scanner->string = 0;
    if (is_newline(lexer->lookahead)) pass_newline(lexer, false);
    lexer->mark_end(lexer);
    lexer->result_symbol = NEWLINE_0;
    return true;
}

// Scans the content of a string that is not closed on its line.
static bool scan_unclosed_string(Scanner *scanner, TSLexer *lexer) {
    if (is_newline(lexer->lookahead) || lexer->eof(lexer)) return give_up_string(scanner, lexer);
    pass_line(lexer);
    lexer->mark_end(lexer);
    lexer->result_symbol = STRING_CONTENT;
    return true;
}

// Scans the content of a string, or its end.
static bool scan_string(Scanner *scanner, TSLexer *lexer, uint8_t string, int content_symbol) {
    int32_t quote = string & STRING_DOUBLE ? '"' : '\'';
    bool triple = string & STRING_TRIPLE;
    bool raw = string & STRING_RAW;
    bool content = false;
    for (;; content = true) {
        // The content ends here, unless the loop continues.
        lexer->mark_end(lexer);
        int32_t c = lexer->lookahead;
        if (lexer->eof(lexer)) {
            if (content) break;
            return give_up_string(scanner, lexer);
        }
        if (c == '\\') {
            if (!raw) {
                // The grammar parses the escape sequence.
                if (content) break;
                return false;
            }
            advance(lexer);
            if (lexer->eof(lexer)) continue;
            if (is_newline(lexer->lookahead)) {
                pass_newline(lexer, false);
            } else {
                advance(lexer);
            }
        } else if (c == quote) {
            int quotes = 0;
            while (quotes < (triple ? 3 : 1) && lexer->lookahead == quote) {
                advance(lexer);
                quotes++;
            }
            if (quotes < (triple ? 3 : 1)) continue;
            if (content) break;
            lexer->mark_end(lexer);
            scanner->string = 0;
            lexer->result_symbol = STRING_END;
            return true;
        } else if (is_newline(c)) {
            if (!triple) {
                if (content) break;
                return give_up_string(scanner, lexer);
            }
            pass_newline(lexer, false);
        } else {
            advance(lexer);
        }
    }
    lexer->result_symbol = (TSSymbol)content_symbol;
    return true;
}

// ------------------------------------------------------------------ misplaced lines

// A line may be left or right of its block by mistake, for example after a newline or a blank was typed in its
// indentation. It must not change the columns of the open blocks, because then all following text would be parsed
// again. The scanner looks ahead at the following lines to find the intended column. It uses a column other than the
// line's own only if Python's rules are violated.

// The most characters of a look-ahead, and the most statements at one column.
#define LOOK_CHARACTERS 65536
#define LOOK_STATEMENTS 64

static const char *const BLOCKS[] = {"with", "for",  "if",  "while",   "def",     "class", "try",
                                     "else", "elif", "async", "except", "finally", NULL};

// A position of the look-ahead: the first character of a line's code, or the end of the text. The first word of the
// first line may already have been read; it is then `word`.
typedef struct {
    TSLexer *lexer;
    uint32_t column;
    int32_t left;
    const char *word;
} Look;

// A statement found by the look-ahead; for a decorated definition, its header.
typedef struct {
    uint32_t column;
    bool decorated;
    bool item;
    // Whether the line ends with a colon, or starts with a header keyword and is followed by a line that is indented
    // further.
    bool header;
} Statement;

static inline void look_on(Look *look) {
    advance(look->lexer);
    look->left--;
}

static inline bool is_over(const Look *look) { return look->left <= 0; }

// Skips a string; a single-quoted one ends with its line.
static void look_past_string(Look *look) {
    TSLexer *lexer = look->lexer;
    int32_t quote = lexer->lookahead;
    int quotes = 0;
    while (quotes < 3 && lexer->lookahead == quote) {
        look_on(look);
        quotes++;
    }
    if (quotes == 2) return;
    int closing = 0;
    while (closing < quotes && !lexer->eof(lexer) && !is_over(look)) {
        if (quotes == 1 && is_newline(lexer->lookahead)) return;
        closing = lexer->lookahead == quote ? closing + 1 : 0;
        if (lexer->lookahead == '\\') look_on(look);
        look_on(look);
    }
}

// Skips blank lines and comments.
static void look_past_trivia(Look *look) {
    TSLexer *lexer = look->lexer;
    for (uint32_t column = 0; !lexer->eof(lexer) && !is_over(look); column = 0) {
        look->column = pass_blanks(lexer, column, false);
        if (lexer->lookahead == '#') {
            while (!is_newline(lexer->lookahead) && !lexer->eof(lexer) && !is_over(look)) look_on(look);
        }
        if (!is_newline(lexer->lookahead)) break;
        pass_newline(lexer, false);
        look->left--;
    }
    if (lexer->eof(lexer)) look->column = 0;
}

// Skips a logical line, and the blank lines and comments after it.
static Statement look_past_line(Look *look) {
    TSLexer *lexer = look->lexer;
    char own_word[WORD_SIZE];
    const char *word = look->word;
    Statement line = {.column = look->column, .decorated = !word && lexer->lookahead == '@'};
    if (!word) {
        read_word(lexer, own_word);
        word = own_word;
    }
    look->word = NULL;
    bool starts_block = is_one_of(word, BLOCKS);
    line.item = line.decorated || strcmp(word, "def") == 0 || strcmp(word, "class") == 0;
    int32_t last = 0;
    for (int depth = 0; !lexer->eof(lexer) && !is_over(look);) {
        int32_t c = lexer->lookahead;
        if (c == '#') {
            while (!is_newline(lexer->lookahead) && !lexer->eof(lexer) && !is_over(look)) look_on(look);
            continue;
        }
        if (is_newline(c) && depth <= 0) break;
        if (!is_blank(c) && !is_newline(c)) last = c;
        if (c == '"' || c == '\'') {
            look_past_string(look);
            continue;
        }
        if (c == '(' || c == '[' || c == '{') depth++;
        if (c == ')' || c == ']' || c == '}') depth--;
        if (c == '\\') look_on(look);
        look_on(look);
    }
    look_past_trivia(look);
    line.header = last == ':' || (starts_block && look->column > line.column);
    return line;
}

// Skips a simple statement, a header, or decorators with the header below them.
static Statement look_past_statement(Look *look) {
    Statement statement = look_past_line(look);
    if (!statement.decorated) return statement;
    TSLexer *lexer = look->lexer;
    while (lexer->lookahead == '@' && !is_over(look)) look_past_line(look);
    if (lexer->eof(lexer) || is_over(look)) return statement;
    Statement header = look_past_line(look);
    if (!header.item) return statement;
    header.decorated = true;
    return header;
}

static inline uint32_t larger(uint32_t a, uint32_t b) { return a > b ? a : b; }

// Returns the intended column of a line left of the innermost block: at least `block` if it belongs to that block.
static uint32_t meant_column(TSLexer *lexer, uint32_t column, uint32_t block, const char *word) {
    Look look = {lexer, column, LOOK_CHARACTERS, word};
    Statement statement = look_past_statement(&look);
    for (int i = 0; i < LOOK_STATEMENTS && !statement.header && !statement.item && look.column == column && !is_over(&look); i++) {
        statement = look_past_statement(&look);
    }
    if (statement.column > column) return statement.column;
    if (is_over(&look)) return column;
    // Nothing is indented below a simple statement, so the statement itself is misplaced.
    if (!statement.header) return larger(column, look.column);
    uint32_t inside = look.column;
    if (inside <= block) return column;
    // The lines below the header are further right than lines below a header at `column` would be. If all following
    // lines are too, or the look-ahead is exhausted, the header belongs to the block.
    while (look.column >= inside && !is_over(&look)) look_past_line(&look);
    return is_over(&look) ? block : larger(column, look.column);
}

// Returns the intended column of a header whose block is at `inside`, in the block at `column`. This is the middle
// between them, unless `step` (the usual indentation, 0 if unknown) gives another column.
static uint32_t header_column(uint32_t column, uint32_t inside, uint32_t step) {
    if (step > 0 && inside == column + 2 * step) return column + step;
    return column + (inside - column) / 2;
}

static uint32_t step_of(const Scanner *scanner) {
    return scanner->depth > 0 ? block_column(scanner) - (uint32_t)outer_column(scanner) : 0;
}

// Whether the first line of a new block is indented by two steps, so that the header between them was deleted.
static bool lacks_header(const Scanner *scanner, const TSLexer *lexer, uint32_t column) {
    uint32_t step = step_of(scanner);
    return step > 0 && column == block_column(scanner) + 2 * step && lexer->lookahead != '@';
}

// Returns the column of a new block whose first line is at `column`; that of the enclosing block if there is no new
// block.
static uint32_t new_column(const Scanner *scanner, TSLexer *lexer, uint32_t column) {
    uint32_t block = block_column(scanner), step = step_of(scanner);
    if (step > 0 && column == block + step) return column;
    if (lacks_header(scanner, lexer, column)) return block + step;
    Look look = {lexer, column, LOOK_CHARACTERS, NULL};
    Statement first = look_past_statement(&look);
    if (first.decorated && first.column > block) {
        // A decorator and its header are at different columns: choose the one in the middle between the enclosing block
        // and the definition's body; if the body is too far away, the one at a multiple of 4.
        if (column <= block) return first.column;
        if (is_over(&look)) return column % 4 == 0 && (column < first.column || first.column % 4 != 0) ? column : first.column;
        bool half_way = look.column == 2 * first.column - block && look.column != 2 * column - block;
        return half_way ? first.column : column;
    }
    if (is_over(&look) || lexer->eof(lexer)) return larger(column, block);
    if (first.header) {
        uint32_t inside = look.column;
        if (inside <= block + 1 || column == block) return larger(column, block);
        if (column < block || inside <= column) return header_column(block, inside, step);
        return !first.item && step > 0 && inside == block + 2 * step ? block + step : column;
    }
    uint32_t second = look.column;
    if (column <= block) {
        for (int i = 0; i < LOOK_STATEMENTS && !first.header && look.column == column && !is_over(&look); i++) {
            first = look_past_statement(&look);
        }
        return is_over(&look) || first.header ? block : larger(look.column, block);
    }
    if (second == column || second <= block) return column;
    // One of two lines is misplaced; the third line shows which.
    look_past_statement(&look);
    return look.column == second ? second : column;
}

// Returns the column of the block that a line right of the innermost block opens; the innermost block's column if it
// opens none.
static uint32_t stray_column(const Scanner *scanner, TSLexer *lexer, uint32_t column) {
    uint32_t block = block_column(scanner);
    Look look = {lexer, column, LOOK_CHARACTERS, NULL};
    Statement first = look_past_statement(&look);
    if (first.decorated) return larger(first.column, block);
    if (is_over(&look)) return column;
    // A single line gained blanks: the following lines are not indented like it.
    if (!first.header && look.column <= block) return block;
    if (first.header && scanner->depth > 0 && look.column == block + step_of(scanner)) return block;
    if (!first.header || look.column <= column) return column;
    uint32_t step = scanner->depth > 0 ? step_of(scanner) : column;
    if (look.column == block + 2 * step) return block + step;
    return scanner->depth == 0 ? block : column;
}

// ------------------------------------------------------------------ lines and blocks

static bool is_left(const Scanner *scanner, uint32_t column) {
    return scanner->depth > 0 && column < block_column(scanner) && (int32_t)column > outer_column(scanner);
}

// At the end of a statement: corrects the column of a block whose first line was too far right to that of the following
// lines.
static void follow_column(Scanner *scanner, TSLexer *lexer, uint32_t column) {
    uint16_t block = block_column(scanner);
    Look look = {lexer, column, LOOK_CHARACTERS, NULL};
    Statement next = look_past_statement(&look);
    if (next.item || is_over(&look)) return;
    uint32_t below = lexer->eof(lexer) ? 0 : look.column;
    if (next.header ? below <= block : below <= column) scanner->columns[scanner->depth - 1] = (uint16_t)column;
}

// Whether a line ends the innermost block. A definition left of the block ends it even if it is right of the enclosing
// block. So if the header of a class was deleted, its definitions are still parsed as in the class. `word` is the
// line's first word, if it has been read.
static bool ends_block(const Scanner *scanner, TSLexer *lexer, uint32_t column, const char *word) {
    uint32_t block = block_column(scanner);
    int32_t outer = outer_column(scanner);
    if ((int32_t)column <= outer) return (int32_t)meant_column(lexer, column, block, word) <= outer;
    if (column >= block) return false;
    Look look = {lexer, column, LOOK_CHARACTERS, word};
    Statement statement = look_past_statement(&look);
    return statement.item && statement.column < block && look.column <= block && !is_over(&look);
}

// Scans the line end after a simple statement. If the next line is a statement of the same block, the token includes
// its indentation. So no statement starts at a position where the parser still expects blocks to end or start. At such
// a position the parser would find old nodes that were parsed in other blocks, and would have to skip each of them
// completely.
static bool scan_newline(Scanner *scanner, TSLexer *lexer) {
    lexer->mark_end(lexer);
    pass_newline(lexer, false);
    int32_t next = lexer->lookahead;
    // If the next line starts in column 0 and may end blocks, the token is empty. So the blocks end before the line
    // end, not at the position where that line starts.
    bool at_end = lexer->eof(lexer) || is_blank(next) || is_newline(next) || next == '#';
    if (at_end || scanner->depth == 0) lexer->mark_end(lexer);
    lexer->result_symbol = NEWLINE_0;
    uint32_t column = pass_blank_lines(lexer, false);
    if (lexer->eof(lexer)) return true;
    if (lexer->lookahead != '#') {
        if (column == block_column(scanner)) lexer->mark_end(lexer);
        if (is_left(scanner, column)) {
            follow_column(scanner, lexer, column);
            return true;
        }
    }
    lexer->result_symbol = (TSSymbol)(NEWLINE_0 + weight(lexer));
    return true;
}

// Scans the boundary between two statements: ends a block, or the compound statement whose block has just ended. Sets
// `*looked` if the lexer has moved past the line's first character, where no other token can be scanned.
static bool scan_boundary(Scanner *scanner, TSLexer *lexer, const bool *valid, bool *looked) {
    bool end = valid[END_0];
    uint16_t block = block_column(scanner);
    // A token scanned here is empty, and is before the lines of the look-ahead.
    lexer->mark_end(lexer);
    bool at_code = !is_blank(lexer->lookahead) && !is_newline(lexer->lookahead) && !lexer->eof(lexer);
    uint32_t column = pass_blank_lines(lexer, true);
    if (at_code && !end && scanner->depth > 0) {
        // After a line's indentation, which the previous token includes, everything that ends before the line has
        // already ended.
        uint32_t here = lexer->get_column(lexer);
        if (here > 0 && here <= block) return false;
        column = here;
    }
    bool in_comment = false;
    if (lexer->lookahead == '#') {
        // A comment outside the block still belongs to it if the code after it does.
        if (column >= block && !end) return false;
        in_comment = true;
        column = pass_trivia(lexer, column);
    }
    bool at_eof = lexer->eof(lexer);
    if (end) {
        if (column == block && !at_eof && !in_comment) lexer->mark_end(lexer);
        if (column >= block && !at_eof) {
            int32_t first = lexer->lookahead;
            if (first == 'e' || first == 'f') {
                // Reading a word moves the lexer, which cannot go back: `weight` then hashes only the text after it.
                char word[WORD_SIZE] = {0};
                read_word(lexer, word);
                if (is_one_of(word, CLAUSES)) return false;
            }
        }
        bool left = !at_eof && !in_comment && is_left(scanner, column);
        if (left) follow_column(scanner, lexer, column);
        lexer->result_symbol = (TSSymbol)(END_0 + (at_eof || left ? 0 : weight(lexer)));
        return true;
    }
    *looked = scanner->depth > 0 && column < block;
    // Also if the parser has no open block, because an error skipped the token that opened it.
    if (scanner->depth > 0 && (at_eof || ends_block(scanner, lexer, column, NULL))) {
        scanner->depth--;
        lexer->result_symbol = DEDENT;
        return true;
    }
    if (valid[STRAY_INDENT] && !in_comment && column > block && !at_eof && scanner->depth < MAX_DEPTH) {
        lexer->mark_end(lexer);
        *looked = true;
        uint32_t stray = stray_column(scanner, lexer, column);
        if (stray <= block) return false;
        scanner->columns[scanner->depth++] = (uint16_t)stray;
        lexer->result_symbol = STRAY_INDENT;
        return true;
    }
    return false;
}

// Scans the text after a header's colon: a block on separate lines, or no block.
static bool scan_block(Scanner *scanner, TSLexer *lexer) {
    if (!lexer->eof(lexer)) pass_newline(lexer, false);
    lexer->mark_end(lexer);
    uint32_t column = pass_blank_lines(lexer, false);
    if (lexer->lookahead == '#') {
        column = pass_trivia(lexer, column);
    } else if (column > block_column(scanner) && !lacks_header(scanner, lexer, column)) {
        lexer->mark_end(lexer);
    }
    column = lexer->eof(lexer) ? 0 : new_column(scanner, lexer, column);
    bool deeper = column > block_column(scanner) && scanner->depth < MAX_DEPTH;
    if (deeper) scanner->columns[scanner->depth++] = (uint16_t)column;
    lexer->result_symbol = deeper ? INDENT : NO_BLOCK;
    return true;
}

// Scans a header after the colon of another header, which no valid program has. It is treated as the first line of a
// block, because the line end between them was deleted.
static bool scan_joined_block(Scanner *scanner, TSLexer *lexer) {
    uint32_t block = block_column(scanner);
    Look look = {lexer, 0, LOOK_CHARACTERS, NULL};
    Statement first = look_past_statement(&look);
    uint32_t column = first.column;
    if (is_over(&look)) look.column = 0;
    if (column <= block && look.column > block + 1) column = header_column(block, look.column, step_of(scanner));
    if (column <= block || scanner->depth >= MAX_DEPTH) return false;
    scanner->columns[scanner->depth++] = (uint16_t)column;
    lexer->result_symbol = INDENT;
    return true;
}

// Scans the text after a decorator: a block whose header was deleted.
static bool scan_definition(Scanner *scanner, TSLexer *lexer) {
    uint32_t column = pass_blank_lines(lexer, true);
    if (lexer->lookahead == '#' || lexer->eof(lexer) || column <= block_column(scanner) || scanner->depth >= MAX_DEPTH) return false;
    lexer->mark_end(lexer);
    Look look = {lexer, column, LOOK_CHARACTERS, NULL};
    bool decorated = lexer->lookahead == '@';
    Statement first = look_past_statement(&look);
    if (decorated ? first.column <= block_column(scanner) : first.item) return false;
    scanner->columns[scanner->depth++] = (uint16_t)(decorated ? first.column : column);
    lexer->result_symbol = DEFINITION_INDENT;
    return true;
}

// Whether a line could start with `word`, which has been read: it is a keyword, or a name that is assigned. `behind` is
// the column after the word if the word starts the line. `get_column` scans the line from its start, so it is called
// only in likely cases.
static bool starts_line(TSLexer *lexer, const char *word, uint32_t behind) {
    if (!is_one_of(word, STATEMENTS) && !is_one_of(word, HEADERS) && strcmp(word, "from") != 0) {
        uint32_t word_end = behind;
        for (; is_blank(lexer->lookahead); advance(lexer)) behind++;
        if (behind == word_end || lexer->lookahead != '=') return false;
    }
    return lexer->get_column(lexer) == behind;
}

static bool make_dedent(Scanner *scanner, TSLexer *lexer) {
    scanner->depth--;
    lexer->result_symbol = DEDENT;
    return true;
}

// Scans a token during error recovery. Every token is valid then, so only tokens that follow from the text alone are
// returned.
static bool scan_recovering(Scanner *scanner, TSLexer *lexer) {
    scanner->string = 0;
    lexer->mark_end(lexer);
    uint32_t column = pass_blanks(lexer, 0, true);
    if (is_newline(lexer->lookahead)) {
        pass_newline(lexer, false);
        lexer->mark_end(lexer);
        column = pass_blank_lines(lexer, false);
        if (column == block_column(scanner) && lexer->lookahead != '#') lexer->mark_end(lexer);
        lexer->result_symbol = NEWLINE_0;
        return true;
    }
    if (lexer->eof(lexer)) return scanner->depth > 0 && make_dedent(scanner, lexer);
    if (lexer->lookahead == '#') return false;
    if (lexer->lookahead == ',') return scan_comma(lexer, false);
    // Two adjacent blanks are rare inside a line.
    bool indented = column > 1 || lexer->lookahead == '@';
    if (indented && lexer->get_column(lexer) == column) {
        if (scanner->depth > 0 && column < block_column(scanner)) {
            return ends_block(scanner, lexer, column, NULL) && make_dedent(scanner, lexer);
        }
        if (column > block_column(scanner) && scanner->depth < MAX_DEPTH) {
            lexer->mark_end(lexer);
            uint32_t stray = stray_column(scanner, lexer, column);
            if (stray <= block_column(scanner)) return false;
            scanner->columns[scanner->depth++] = (uint16_t)stray;
            lexer->result_symbol = STRAY_INDENT;
            return true;
        }
    }
    char word[WORD_SIZE];
    uint32_t length = read_word(lexer, word);
    if (scan_string_start(scanner, lexer, word)) return true;
    bool unindented = !indented && scanner->depth > 0 && length > 0;
    return unindented && starts_line(lexer, word, column + length) && ends_block(scanner, lexer, column, word) &&
           make_dedent(scanner, lexer);
}

// Scans a line end inside brackets, or where an operand is missing. Returns no token unless the next line starts a
// statement.
static bool scan_continuation(Scanner *scanner, TSLexer *lexer, const bool *valid) {
    pass_newline(lexer, true);
    lexer->mark_end(lexer);
    uint32_t column = pass_blanks(lexer, 0, true);
    while (is_newline(lexer->lookahead)) {
        pass_newline(lexer, true);
        column = pass_blanks(lexer, 0, true);
    }
    if (valid[COMMA_0] && lexer->lookahead == ',') return scan_comma(lexer, valid[COMMA_1]);
    bool comment = lexer->lookahead == '#';
    if (comment) column = pass_trivia(lexer, column);
    int32_t first = lexer->lookahead;
    char word[WORD_SIZE];
    read_word(lexer, word);
    if (!comment && valid[STRING_START] && (lexer->lookahead == '"' || lexer->lookahead == '\'')) {
        return scan_string_start(scanner, lexer, word);
    }
    bool wants_operand = !valid[COMMA_0] && !valid[COMMA_1];
    if (!lexer->eof(lexer) && !starts_statement(lexer, first, word, column, block_column(scanner), wants_operand)) return false;
    lexer->result_symbol = NEWLINE_0;
    return true;
}

bool tree_sitter_rx_external_scanner_scan(void *payload, TSLexer *lexer, const bool *valid) {
    Scanner *scanner = (Scanner *)payload;
    if (valid[RECOVERING]) return scan_recovering(scanner, lexer);
    if (valid[STRING_CONTENT]) {
        return scanner->string ? scan_string(scanner, lexer, scanner->string, STRING_CONTENT) : scan_unclosed_string(scanner, lexer);
    }
    scanner->string = 0;
    if (valid[DOUBLE_CONTENT]) return scan_string(scanner, lexer, STRING_OPEN | STRING_DOUBLE, DOUBLE_CONTENT);
    if (valid[SINGLE_CONTENT]) return scan_string(scanner, lexer, STRING_OPEN, SINGLE_CONTENT);
    if (valid[DEFINITION_INDENT]) return scan_definition(scanner, lexer);
    if (valid[NO_COLON]) {
        pass_blanks(lexer, 0, true);
        if (valid[COMMA_0] && lexer->lookahead == ',') return scan_comma(lexer, valid[COMMA_1]);
        if (!is_newline(lexer->lookahead) && !lexer->eof(lexer)) return false;
        lexer->mark_end(lexer);
        pass_trivia(lexer, 0);
        // The rest of a header that was broken in two.
        if (lexer->lookahead == ':' || lexer->lookahead == '-') return false;
        lexer->result_symbol = NO_COLON;
        return true;
    }
    if (valid[INDENT]) {
        pass_blanks(lexer, 0, true);
        if (is_newline(lexer->lookahead) || lexer->eof(lexer)) return scan_block(scanner, lexer);
        lexer->mark_end(lexer);
        char word[WORD_SIZE];
        read_word(lexer, word);
        if (lexer->lookahead == '@' || is_one_of(word, BLOCKS)) return scan_joined_block(scanner, lexer);
        return valid[STRING_START] && scan_string_start(scanner, lexer, word);
    } else if (valid[STRAY_INDENT] || valid[END_0]) {
        bool looked = false;
        if (scan_boundary(scanner, lexer, valid, &looked)) return true;
        if (valid[END_0] || looked) return false;
    } else {
        pass_blanks(lexer, 0, true);
        bool at_eof = lexer->eof(lexer);
        if (valid[COMMA_0] && lexer->lookahead == ',') return scan_comma(lexer, valid[COMMA_1]);
        if (valid[NEWLINE_0]) {
            if (at_eof) {
                lexer->mark_end(lexer);
                lexer->result_symbol = NEWLINE_0;
                return true;
            }
            if (is_newline(lexer->lookahead)) {
                return scan_newline(scanner, lexer);
            }
        } else if (is_newline(lexer->lookahead)) {
            return scan_continuation(scanner, lexer, valid);
        }
    }
    if (!valid[STRING_START] || !may_start_string(lexer->lookahead)) return false;
    char word[WORD_SIZE];
    read_word(lexer, word);
    return scan_string_start(scanner, lexer, word);
}

// ------------------------------------------------------------------ state

void *tree_sitter_rx_external_scanner_create(void) { return ts_calloc(1, sizeof(Scanner)); }

void tree_sitter_rx_external_scanner_destroy(void *payload) { ts_free(payload); }

unsigned tree_sitter_rx_external_scanner_serialize(void *payload, char *buffer) {
    const Scanner *scanner = (const Scanner *)payload;
    unsigned size = 0;
    // The initial state is serialized as no bytes.
    if (scanner->depth == 0 && !scanner->string) return 0;
    buffer[size++] = (char)scanner->string;
    for (uint16_t i = 0; i < scanner->depth; i++) {
        buffer[size++] = (char)(scanner->columns[i] & 0xFF);
        buffer[size++] = (char)(scanner->columns[i] >> 8);
    }
    return size;
}

void tree_sitter_rx_external_scanner_deserialize(void *payload, const char *buffer, unsigned length) {
    Scanner *scanner = (Scanner *)payload;
    scanner->depth = 0;
    scanner->string = length > 0 ? (uint8_t)buffer[0] : 0;
    for (unsigned at = 1; at + 1 < length && scanner->depth < MAX_DEPTH; at += 2) {
        scanner->columns[scanner->depth++] = (uint16_t)((uint8_t)buffer[at] | (uint8_t)buffer[at + 1] << 8);
    }
}
