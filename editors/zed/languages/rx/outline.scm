(class_definition "class" @context name: (identifier) @name) @item
(function_definition "def" @context name: (identifier) @name) @item
