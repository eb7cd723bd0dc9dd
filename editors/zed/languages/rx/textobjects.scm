(function_definition body: (block) @function.inside) @function.around
(class_definition body: (block) @class.inside) @class.around
(comment)+ @comment.around
