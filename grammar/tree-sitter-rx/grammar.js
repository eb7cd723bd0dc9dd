/**
 * Relax IR text (TVMScript) for tree-sitter: layer 1 of `../rx.ebnf`, the Python subset in which every line is parsed.
 *
 * This grammar has two unusual properties (../README.md, "Fast edits with tree-sitter"):
 *
 * - It is LR(1) without conflicts. tree-sitter never reuses a node that was created while several parses were in progress.
 * - A list of statements is parsed as a tree; see `_statements`.
 *
 * Nodes have the same names as in tree-sitter-python where they have the same meaning.
 */

/// <reference types="tree-sitter-cli/dsl" />
// @ts-check

const PREC = {
  named: -3,
  lambda: -2,
  conditional: -1,
  or: 1,
  and: 2,
  not: 3,
  compare: 4,
  bit_or: 5,
  bit_xor: 6,
  bit_and: 7,
  shift: 8,
  sum: 9,
  product: 10,
  sign: 11,
  power: 12,
  await: 13,
  postfix: 14,
};

const AUGMENTED = ["+=", "-=", "*=", "/=", "//=", "%=", "**=", "@=", "<<=", ">>=", "&=", "^=", "|="];

/** One or more, separated by commas; a trailing comma is allowed. */
const list1 = ($, rule) => seq(rule, repeat(seq(comma($), rule)), optional(comma($)));

/** The items of a tuple: two or more, or one with a trailing comma. */
const tupleOf = ($, rule) => seq(rule, choice(comma($), seq(repeat1(seq(comma($), rule)), optional(comma($)))));

/** A comma in lists that are not divided (see `_statements`). */
const comma = ($) => alias($._comma_0, ",");

export default grammar({
  name: "rx",

  // The order is that of the `enum` in src/scanner.c.
  externals: $ => [
    // The line end after a simple statement, and the end of a compound statement; three weights of each.
    $._newline_0,
    $._newline_1,
    $._newline_2,
    $._end_0,
    $._end_1,
    $._end_2,
    $._indent,
    $._dedent,
    // The line end after a header without a block.
    $._no_block,
    // A block without a header, or with a broken one. It is valid wherever a statement may start.
    $._stray_indent,
    // The same after a decorator, where a definition is expected.
    $._definition_indent,
    // The end of a header that lacks its colon.
    $._no_colon,
    // A comma. In lists that are divided there are three weights; elsewhere it has weight 0.
    $._comma_0,
    $._comma_1,
    $._comma_2,
    $.string_start,
    $.string_content,
    $.string_end,
    // The same for single-line strings. For these the scanner need not store a quote in its state, so old nodes can be
    // reused.
    $._double_start,
    $._double_content,
    $._single_start,
    $._single_content,
    // Never returned by the scanner. If one of these is valid, the scanner is inside brackets.
    ")",
    "]",
    "}",
    // Never returned; see `_words`.
    $._never,
    // In no rule: valid only while the parser recovers from an error.
    $._recovering,
  ],

  extras: $ => [/[\s\f\uFEFF]/, $.comment, $.line_continuation],

  inline: $ => [$._newline, $._item, $._body],

  supertypes: $ => [$._simple_statement, $._compound_statement, $._expression, $._primary_expression],

  rules: {
    source_file: $ => optional($._statements),

    // With a plain `repeat` of statements, everything from an edit to the end of the block would be parsed again,
    // because tree-sitter balances the list afterwards and its nodes then fit nowhere else. Therefore the text itself
    // determines where a list is divided. The scanner gives each statement's end a weight, a hash of the characters
    // that follow: one in 32 has weight 1 or more, one in 1024 weight 2. A chunk of weight 1 is a statement of weight 1
    // with those before it; a chunk of weight 2 is a statement of weight 2 with the chunks before it. Such chunks can
    // be reused whatever changes elsewhere. Chunks are hidden: no query sees them.
    _statements: $ => choice(
      $._run_2,
      seq(optional($._run_2), $._run_1),
      seq(optional($._run_2), optional($._run_1), $._run_0),
    ),
    _run_2: $ => seq(optional($._run_2), $._chunk_2),
    _run_1: $ => seq(optional($._run_1), $._chunk_1),
    _run_0: $ => seq(optional($._run_0), $._statement_0),
    _chunk_2: $ => seq(optional($._run_1), optional($._run_0), $._statement_2),
    _chunk_1: $ => seq(optional($._run_0), $._statement_1),
    _statement_0: $ => choice(seq($._simple_line, $._newline_0), seq($._compound_statement, $._end_0)),
    _statement_1: $ => choice(seq($._simple_line, $._newline_1), seq($._compound_statement, $._end_1)),
    _statement_2: $ => choice(seq($._simple_line, $._newline_2), seq($._compound_statement, $._end_2)),
    _newline: $ => choice($._newline_0, $._newline_1, $._newline_2),

    _simple_line: $ => choice(
      seq($._simple_statement, repeat(seq(";", $._simple_statement)), optional(";")),
      $._words,
    ),

    // ---------------------------------------------------------------- simple statements

    _simple_statement: $ => choice(
      $.assignment,
      $.augmented_assignment,
      $.expression_statement,
      $.return_statement,
      $.assert_statement,
      $.pass_statement,
      $.break_statement,
      $.continue_statement,
      $.import_statement,
      $.import_from_statement,
      $.raise_statement,
      $.delete_statement,
      $.global_statement,
      $.nonlocal_statement,
    ),

    // Never parsed. A lexer without a `word` token does not recognize identifiers during error recovery, unless each
    // keyword is valid next to them in some rule.
    _words: $ => seq($._never, choice(
      $.identifier, "and", "or", "in", "is", "else", "elif", "as", "except", "finally", "import", "from",
    )),

    expression_statement: $ => choice($._expressions, $.yield),

    assignment: $ => seq(
      field("left", $._expressions),
      choice(
        seq("=", field("right", $._right_side)),
        seq(":", field("type", $.type), optional(seq("=", field("right", $._right_side)))),
      ),
    ),
    augmented_assignment: $ => seq(
      field("left", $._expressions),
      field("operator", choice(...AUGMENTED)),
      field("right", $._right_side),
    ),
    _right_side: $ => choice($._expressions, $.assignment, $.yield),

    return_statement: $ => seq("return", optional(field("value", $._expressions))),
    assert_statement: $ => seq("assert", $._expression, optional(seq(comma($), $._expression))),
    pass_statement: _ => "pass",
    break_statement: _ => "break",
    continue_statement: _ => "continue",
    raise_statement: $ => seq("raise", optional(seq($._expressions, optional(seq("from", field("cause", $._expression)))))),
    delete_statement: $ => seq("del", $._expressions),
    global_statement: $ => seq("global", list1($, $.identifier)),
    nonlocal_statement: $ => seq("nonlocal", list1($, $.identifier)),

    import_statement: $ => seq("import", list1($, field("name", $._imported))),
    import_from_statement: $ => seq(
      "from",
      field("module_name", choice($.dotted_name, $.relative_import)),
      "import",
      choice(
        $.wildcard_import,
        list1($, field("name", $._imported)),
        seq("(", list1($, field("name", $._imported)), ")"),
      ),
    ),
    relative_import: $ => seq(repeat1(choice(".", "...")), optional($.dotted_name)),
    wildcard_import: _ => "*",
    _imported: $ => choice($.dotted_name, $.aliased_import),
    aliased_import: $ => seq(field("name", $.dotted_name), "as", field("alias", $.identifier)),
    dotted_name: $ => seq($.identifier, repeat(seq(".", $.identifier))),

    // ---------------------------------------------------------------- compound statements

    _compound_statement: $ => choice(
      $.class_definition,
      $.function_definition,
      $.decorated_definition,
      $.with_statement,
      $.for_statement,
      $.while_statement,
      $.if_statement,
      $.try_statement,
      $.stray_block,
    ),

    // A line after the colon, or lines that are indented further. A missing block is reported by rx.
    _body: $ => seq(choice(":", $._no_colon), choice(field("body", $.block), $._no_block)),
    block: $ => choice(
      seq($._simple_line, $._newline),
      seq($._indent, $._statements, $._dedent),
    ),

    stray_block: $ => seq($._stray_indent, $._statements, $._dedent),

    decorated_definition: $ => seq(
      repeat1(seq($.decorator, $._newline)),
      choice(
        field("definition", choice($.class_definition, $.function_definition)),
        alias($._definition_block, $.stray_block),
      ),
    ),
    decorator: $ => seq("@", $._expression),
    _definition_block: $ => seq($._definition_indent, $._statements, $._dedent),

    class_definition: $ => seq(
      "class",
      field("name", $.identifier),
      optional(field("superclasses", $.argument_list)),
      $._body,
    ),

    function_definition: $ => seq(
      optional("async"),
      "def",
      field("name", $.identifier),
      optional(field("type_parameters", $.type_parameters)),
      field("parameters", $.parameters),
      optional(seq("->", field("return_type", alias($._return_type, $.type)))),
      $._body,
    ),
    _return_type: $ => $._expressions,
    type_parameters: $ => seq("[", list1($, $.type_parameter), "]"),
    type_parameter: $ => seq(
      optional(choice("*", "**")),
      field("name", $.identifier),
      optional(seq(":", field("bound", $.type))),
    ),
    // Divided like lists of statements, because a function can have as many parameters.
    parameters: $ => seq(
      "(",
      optional($._parameter_run_2),
      optional($._parameter_run_1),
      optional($._parameter_run_0),
      optional($._parameter),
      ")",
    ),
    _parameter_run_2: $ => seq(optional($._parameter_run_2), $._parameter_chunk_2),
    _parameter_run_1: $ => seq(optional($._parameter_run_1), $._parameter_chunk_1),
    _parameter_run_0: $ => seq(optional($._parameter_run_0), $._parameter_0),
    _parameter_chunk_2: $ => seq(optional($._parameter_run_1), optional($._parameter_run_0), $._parameter_2),
    _parameter_chunk_1: $ => seq(optional($._parameter_run_0), $._parameter_1),
    _parameter_0: $ => seq($._parameter, alias($._comma_0, ",")),
    _parameter_1: $ => seq($._parameter, alias($._comma_1, ",")),
    _parameter_2: $ => seq($._parameter, alias($._comma_2, ",")),
    _parameter: $ => choice(
      $.identifier,
      $.typed_parameter,
      $.default_parameter,
      $.typed_default_parameter,
      $.list_splat_pattern,
      $.dictionary_splat_pattern,
      $.keyword_separator,
      $.positional_separator,
    ),
    typed_parameter: $ => seq(
      field("name", choice($.identifier, $.list_splat_pattern, $.dictionary_splat_pattern)),
      ":",
      field("type", $.type),
    ),
    default_parameter: $ => seq(field("name", $.identifier), "=", field("value", $._expression)),
    typed_default_parameter: $ => seq(
      field("name", $.identifier),
      ":",
      field("type", $.type),
      "=",
      field("value", $._expression),
    ),
    list_splat_pattern: $ => seq("*", $.identifier),
    dictionary_splat_pattern: $ => seq("**", $.identifier),
    keyword_separator: _ => "*",
    positional_separator: _ => "/",

    with_statement: $ => seq(optional("async"), "with", list1($, $.with_item), $._body),
    with_item: $ => seq(field("value", $._expression), optional(seq("as", field("alias", $._target)))),

    for_statement: $ => seq(
      optional("async"),
      "for",
      field("left", $._targets),
      "in",
      field("right", $._expressions),
      $._body,
      optional(field("alternative", $.else_clause)),
    ),
    // A target ends before `in`, which a comparison would include.
    _target: $ => $._primary_expression,
    _targets: $ => choice($._target, alias($._target_list, $.expression_list)),
    _target_list: $ => tupleOf($, $._target),

    while_statement: $ => seq(
      "while",
      field("condition", $._expression),
      $._body,
      optional(field("alternative", $.else_clause)),
    ),

    if_statement: $ => seq(
      "if",
      field("condition", $._expression),
      $._body,
      repeat(field("alternative", $.elif_clause)),
      optional(field("alternative", $.else_clause)),
    ),
    elif_clause: $ => seq("elif", field("condition", $._expression), $._body),
    else_clause: $ => seq("else", $._body),

    // Python statements without a meaning in Relax, parsed so that Python files have no errors.
    try_statement: $ => seq(
      "try",
      $._body,
      repeat($.except_clause),
      optional($.else_clause),
      optional($.finally_clause),
    ),
    except_clause: $ => seq(
      "except",
      optional(seq($._expressions, optional(seq("as", field("alias", $.identifier))))),
      $._body,
    ),
    finally_clause: $ => seq("finally", $._body),

    // ---------------------------------------------------------------- expressions

    type: $ => $._expression,

    _expressions: $ => choice($._item, $.expression_list),
    expression_list: $ => tupleOf($, $._item),
    _item: $ => choice($._expression, $.list_splat),

    _expression: $ => choice(
      $.named_expression,
      $.lambda,
      $.conditional_expression,
      $.boolean_operator,
      $.not_operator,
      $.comparison_operator,
      $.binary_operator,
      $.unary_operator,
      $.await,
      $._primary_expression,
    ),

    named_expression: $ => prec.right(PREC.named, seq(
      field("name", $.identifier),
      ":=",
      field("value", $._expression),
    )),

    lambda: $ => prec.right(PREC.lambda, seq(
      "lambda",
      optional(field("parameters", $.lambda_parameters)),
      ":",
      field("body", $._expression),
    )),
    lambda_parameters: $ => list1($, choice(
      $.identifier,
      $.default_parameter,
      $.list_splat_pattern,
      $.dictionary_splat_pattern,
      $.keyword_separator,
      $.positional_separator,
    )),

    conditional_expression: $ => prec.right(PREC.conditional, seq(
      field("consequence", $._expression),
      "if",
      field("condition", $._expression),
      "else",
      field("alternative", $._expression),
    )),

    boolean_operator: $ => choice(
      binary($, PREC.or, "or"),
      binary($, PREC.and, "and"),
    ),
    not_operator: $ => prec(PREC.not, seq("not", field("argument", $._expression))),

    comparison_operator: $ => binary($, PREC.compare, choice(
      "==", "!=", "<", "<=", ">", ">=", "in", "is", seq("not", "in"), seq("is", "not"),
    )),

    binary_operator: $ => choice(
      binary($, PREC.bit_or, "|"),
      binary($, PREC.bit_xor, "^"),
      binary($, PREC.bit_and, "&"),
      binary($, PREC.shift, choice("<<", ">>")),
      binary($, PREC.sum, choice("+", "-")),
      binary($, PREC.product, choice("*", "/", "//", "%", "@")),
      prec.right(PREC.power, seq(
        field("left", $._expression),
        field("operator", "**"),
        field("right", $._expression),
      )),
    ),
    unary_operator: $ => prec(PREC.sign, seq(
      field("operator", choice("+", "-", "~")),
      field("argument", $._expression),
    )),
    await: $ => prec(PREC.await, seq("await", $._expression)),
    yield: $ => seq("yield", optional(choice(seq("from", $._expression), $._expressions))),

    _primary_expression: $ => choice(
      $.identifier,
      $.integer,
      $.float,
      $.string,
      $.concatenated_string,
      $.true,
      $.false,
      $.none,
      $.ellipsis,
      $.attribute,
      $.call,
      $.subscript,
      $.parenthesized_expression,
      $.tuple,
      $.generator_expression,
      $.list,
      $.list_comprehension,
      $.dictionary,
      $.dictionary_comprehension,
      $.set,
      $.set_comprehension,
    ),

    attribute: $ => prec(PREC.postfix, seq(
      field("object", $._primary_expression),
      ".",
      field("attribute", $.identifier),
    )),
    call: $ => prec(PREC.postfix, seq(
      field("function", $._primary_expression),
      field("arguments", choice($.argument_list, $.generator_expression)),
    )),
    argument_list: $ => seq("(", optional(list1($, $._argument)), ")"),
    _argument: $ => choice($._expression, $.keyword_argument, $.list_splat, $.dictionary_splat),
    keyword_argument: $ => seq(field("name", $.identifier), "=", field("value", $._expression)),
    list_splat: $ => seq("*", $._expression),
    dictionary_splat: $ => seq("**", $._expression),

    subscript: $ => prec(PREC.postfix, seq(
      field("value", $._primary_expression),
      "[",
      list1($, field("subscript", choice($._item, $.slice))),
      "]",
    )),
    slice: $ => seq(
      optional(field("start", $._expression)),
      ":",
      optional(field("stop", $._expression)),
      optional(seq(":", optional(field("step", $._expression)))),
    ),

    parenthesized_expression: $ => seq("(", choice($._item, $.yield), ")"),
    tuple: $ => seq("(", optional(tupleOf($, $._item)), ")"),
    list: $ => seq("[", optional(list1($, $._item)), "]"),
    set: $ => seq("{", list1($, $._item), "}"),
    dictionary: $ => seq("{", optional(list1($, choice($.pair, $.dictionary_splat))), "}"),
    pair: $ => seq(field("key", $._expression), ":", field("value", $._expression)),

    generator_expression: $ => seq("(", field("body", $._expression), $._comprehension, ")"),
    list_comprehension: $ => seq("[", field("body", $._expression), $._comprehension, "]"),
    set_comprehension: $ => seq("{", field("body", $._expression), $._comprehension, "}"),
    dictionary_comprehension: $ => seq("{", field("body", $.pair), $._comprehension, "}"),
    _comprehension: $ => seq($.for_in_clause, repeat(choice($.for_in_clause, $.if_clause))),
    // A condition of the comprehension is not the `if` of a conditional expression after `in`.
    for_in_clause: $ => prec.left(PREC.conditional + 1, seq(
      optional("async"),
      "for",
      field("left", $._targets),
      "in",
      field("right", $._expression),
    )),
    if_clause: $ => prec.left(PREC.conditional + 1, seq("if", $._expression)),

    // ---------------------------------------------------------------- tokens

    concatenated_string: $ => prec.left(seq($.string, repeat1($.string))),
    string: $ => choice(
      quoted($, $.string_start, $.string_content),
      quoted($, alias($._double_start, $.string_start), alias($._double_content, $.string_content)),
      quoted($, alias($._single_start, $.string_start), alias($._single_content, $.string_content)),
    ),
    escape_sequence: _ => token.immediate(/\\(\r\n|x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|N\{[^}\r\n]+\}|[0-7]{1,3}|[^0-7])/),

    integer: _ => token(choice(
      /[0-9](_?[0-9])*/,
      /0[xX](_?[0-9a-fA-F])+/,
      /0[oO](_?[0-7])+/,
      /0[bB](_?[01])+/,
    )),
    float: _ => token(choice(
      /[0-9](_?[0-9])*\.([0-9](_?[0-9])*)?([eE][+-]?[0-9](_?[0-9])*)?[jJ]?/,
      /\.[0-9](_?[0-9])*([eE][+-]?[0-9](_?[0-9])*)?[jJ]?/,
      /[0-9](_?[0-9])*[eE][+-]?[0-9](_?[0-9])*[jJ]?/,
      /[0-9](_?[0-9])*[jJ]/,
    )),
    identifier: _ => /[\p{XID_Start}_]\p{XID_Continue}*/,
    true: _ => "True",
    false: _ => "False",
    none: _ => "None",
    ellipsis: _ => "...",
    comment: _ => token(/#[^\r\n]*/),
    line_continuation: _ => token(/\\(\r\n|\n|\r)/),
  },
});

function quoted($, start, content) {
  return seq(start, repeat(choice(content, $.escape_sequence)), $.string_end);
}

function binary($, precedence, operator) {
  return prec.left(precedence, seq(
    field("left", $._expression),
    field("operator", operator),
    field("right", $._expression),
  ));
}
