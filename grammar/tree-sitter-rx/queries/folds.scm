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
  (parameters)
  (argument_list)
  (tuple)
  (list)
  (dictionary)
  (set)
  (string)
] @fold

(import_from_statement)+ @fold
(comment)+ @fold
