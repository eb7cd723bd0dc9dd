(class_definition name: (identifier) @name) @definition.module

(function_definition name: (identifier) @name) @definition.function

; `relu = R.ExternFunc("relu")` in a module.
(class_definition
  body: (block
    (assignment
      left: (identifier) @name
      right: (call function: (attribute attribute: (identifier) @_maker))) @definition.function)
  (#eq? @_maker "ExternFunc"))

(source_file
  (assignment
    left: (identifier) @name) @definition.constant)

(call function: (identifier) @name) @reference.call

(call function: (attribute attribute: (identifier) @name)) @reference.call

; `cls.kernel` handed to R.call_tir.
(argument_list
  (attribute
    object: (identifier) @_module
    attribute: (identifier) @name) @reference.call
  (#eq? @_module "cls"))
