(decorated_definition) @function.outer
(function_definition body: (block) @function.inside @function.inner) @function.around @function.outer
(class_definition body: (block) @class.inside @class.inner) @class.around @class.outer

(parameters [
  (identifier)
  (typed_parameter)
  (default_parameter)
  (typed_default_parameter)
] @parameter.inside @parameter.inner)
(argument_list (_) @parameter.inside @parameter.inner)

(call) @call.outer
(call arguments: (argument_list) @call.inner)

(assignment
  left: (_) @assignment.lhs
  right: (_) @assignment.rhs) @assignment.outer

(for_statement body: (block) @loop.inner) @loop.outer
(while_statement body: (block) @loop.inner) @loop.outer
(if_statement body: (block) @conditional.inner) @conditional.outer
(with_statement body: (block) @block.inner) @block.outer

(return_statement value: (_) @return.inner) @return.outer
(comment) @comment.inside @comment.outer
(comment)+ @comment.around
