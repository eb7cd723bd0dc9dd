; Scopes and what they define. Relax lets names of a dataflow block be seen after it (`R.output`), so blocks are no scopes.

(source_file) @local.scope
(class_definition) @local.scope
(function_definition) @local.scope
(lambda) @local.scope
(list_comprehension) @local.scope
(set_comprehension) @local.scope
(dictionary_comprehension) @local.scope
(generator_expression) @local.scope

(class_definition name: (identifier) @local.definition.type)
(function_definition name: (identifier) @local.definition.function)

(type_parameter name: (identifier) @local.definition.type)
(parameters (identifier) @local.definition.parameter)
(typed_parameter name: (identifier) @local.definition.parameter)
(default_parameter name: (identifier) @local.definition.parameter)
(typed_default_parameter name: (identifier) @local.definition.parameter)
(lambda_parameters (identifier) @local.definition.parameter)
(list_splat_pattern (identifier) @local.definition.parameter)
(dictionary_splat_pattern (identifier) @local.definition.parameter)

(assignment left: (identifier) @local.definition.var)
(assignment left: (expression_list (identifier) @local.definition.var))
(assignment left: (tuple (identifier) @local.definition.var))
(named_expression name: (identifier) @local.definition.var)
(for_statement left: (identifier) @local.definition.var)
(for_statement left: (expression_list (identifier) @local.definition.var))
(for_in_clause left: (identifier) @local.definition.var)
(for_in_clause left: (expression_list (identifier) @local.definition.var))
(with_item alias: (identifier) @local.definition.var)

(dotted_name . (identifier) @local.definition.import .)
(aliased_import alias: (identifier) @local.definition.import)

(identifier) @local.reference
