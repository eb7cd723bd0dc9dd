; The grammar's highlights.scm with the captures that Zed calls otherwise; README.md says how it is made.
; Colours by structure: what stands under `R.`, `T.` and `I.` is told by its place, not by lists of names.
; Of several patterns that match a node the last one counts.

(identifier) @variable

; ---------------------------------------------------------------- names of the script namespaces

((identifier) @namespace
  (#match? @namespace "^[RTI]$"))

((identifier) @variable.special
  (#eq? @variable.special "cls"))

(attribute attribute: (identifier) @property)

; What is called: an operator, a prim_func, a function of the module.
(call function: (identifier) @function.call)
(call function: (attribute attribute: (identifier) @function.method.call))

; `R.add(…)`, `T.exp(…)`: a name of the language.
(call
  function: (attribute
    object: (identifier) @namespace
    attribute: (identifier) @function.builtin)
  (#match? @namespace "^[RTI]$"))

; `R.nn.conv2d(…)`, `T.axis.remap(…)`.
(call
  function: (attribute
    object: (attribute
      object: (identifier) @namespace
      attribute: (identifier) @namespace)
    attribute: (identifier) @function.builtin)
  (#match? @namespace "^[RTI]$"))

; `R.vm.builtin.x(…)`, `R.ccl.…`: three deep.
(call
  function: (attribute
    object: (attribute
      object: (attribute
        object: (identifier) @namespace
        attribute: (identifier) @namespace)
      attribute: (identifier) @namespace)
    attribute: (identifier) @function.builtin)
  (#match? @namespace "^[RTI]$"))

; Names in capitals are types: `R.Tensor`, `T.Buffer`, `I.StringType`.
(attribute
  object: (identifier) @namespace
  attribute: (identifier) @type.builtin
  (#match? @namespace "^[RTI]$")
  (#match? @type.builtin "^[A-Z]"))

; What stands in an annotation is a type, whatever its name: `T.int64`, `T.handle`.
(type (attribute attribute: (identifier) @type.builtin))
(type (call function: (attribute attribute: (identifier) @type.builtin)))
(type (identifier) @type)

; A scope's opener: `with R.dataflow():`, `with T.sblock("name"):`.
(with_item
  value: (call
    function: (attribute
      object: (identifier) @namespace
      attribute: (identifier) @keyword))
  (#match? @namespace "^[RTI]$"))

; ---------------------------------------------------------------- definitions

(decorator "@" @attribute)
(decorator (identifier) @attribute)
(decorator (attribute attribute: (identifier) @attribute))
(decorator (call function: (identifier) @attribute))
(decorator (call function: (attribute attribute: (identifier) @attribute)))

(class_definition name: (identifier) @type.definition)
(function_definition name: (identifier) @function)
(type_parameter name: (identifier) @type.parameter)

(parameters (identifier) @variable.parameter)
(parameters [
  (typed_parameter name: (identifier) @variable.parameter)
  (default_parameter name: (identifier) @variable.parameter)
  (typed_default_parameter name: (identifier) @variable.parameter)
])
(lambda_parameters (identifier) @variable.parameter)
(list_splat_pattern (identifier) @variable.parameter)
(dictionary_splat_pattern (identifier) @variable.parameter)
(keyword_argument name: (identifier) @variable.parameter)

; `n = TypeVar("n")`, `n = T.int64()` bring in a symbolic dim.
(assignment
  left: (identifier) @type.parameter
  right: (call
    function: (identifier) @function.builtin)
  (#eq? @function.builtin "TypeVar"))

(import_statement name: (dotted_name (identifier) @namespace))
(import_from_statement module_name: (dotted_name (identifier) @namespace))
(aliased_import name: (dotted_name (identifier) @namespace))
(aliased_import alias: (identifier) @namespace)

; ---------------------------------------------------------------- literals

(integer) @number
(float) @number.float
[(true) (false)] @boolean
(none) @constant.builtin
(ellipsis) @constant.builtin
(string) @string
(escape_sequence) @string.escape
(pair key: (string) @string.special)
(comment) @comment

; A string that is a statement documents.
(expression_statement (string) @comment.doc)

; ---------------------------------------------------------------- words and signs

["def" "lambda"] @keyword.function
"class" @keyword.type
["import" "from"] @keyword.import
(aliased_import "as" @keyword.import)
["if" "elif" "else"] @keyword.conditional
["for" "while"] @keyword.repeat
(for_statement "in" @keyword.repeat)
(for_in_clause "in" @keyword.repeat)
[(break_statement) (continue_statement)] @keyword.repeat
["return" "yield"] @keyword.return
["try" "except" "finally" "raise"] @keyword.exception
["with" "assert" "del" "global" "nonlocal" (pass_statement)] @keyword
["async" "await"] @keyword.coroutine
(with_item "as" @keyword)
(except_clause "as" @keyword)
["and" "or" "not" "is"] @keyword.operator
(comparison_operator "in" @keyword.operator)

(binary_operator operator: _ @operator)
(unary_operator operator: _ @operator)
(augmented_assignment operator: _ @operator)
(comparison_operator operator: ["==" "!=" "<" "<=" ">" ">="] @operator)
["=" ":=" "->"] @operator

["(" ")" "[" "]" "{" "}"] @punctuation.bracket
["," ":" ";" "."] @punctuation.delimiter
