((comment) @injection.content
  (#set! injection.language "comment"))

; The metadata section is JSON.
((call
  function: (attribute attribute: (identifier) @_loader)
  arguments: (argument_list (string (string_content) @injection.content)))
  (#eq? @_loader "load_json")
  (#set! injection.language "json"))
