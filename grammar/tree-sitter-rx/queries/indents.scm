; Captures as Neovim reads them.

[
  (class_definition)
  (function_definition)
  (with_statement)
  (for_statement)
  (while_statement)
  (if_statement)
  (elif_clause)
  (else_clause)
  (try_statement)
  (except_clause)
  (finally_clause)
] @indent.begin

([
  (parameters)
  (argument_list)
  (tuple)
  (parenthesized_expression)
] @indent.begin
  (#set! indent.immediate 1))

[
  (list)
  (dictionary)
  (set)
] @indent.begin

[")" "]" "}"] @indent.end
[")" "]" "}" "elif" "else" "except" "finally"] @indent.branch

[
  (return_statement)
  (pass_statement)
  (break_statement)
  (continue_statement)
  (raise_statement)
] @indent.dedent

(string) @indent.auto
(ERROR) @indent.auto
