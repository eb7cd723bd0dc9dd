-- Neovim with editors/neovim/rx.lua. Writes a line per feature into $RX_REPORT: `ok NAME` or `not ok NAME: why`.

local report = assert(io.open(vim.env.RX_REPORT, "w"))
local WAIT = 60000

local function clients()
  return (vim.lsp.get_clients or vim.lsp.get_active_clients)()
end

local function capability(name)
  local client = clients()[1]
  return client and client.server_capabilities[name]
end

-- One feature: what it stands on in the server, and what must come true.
local function feature(name, provider, check)
  local fine, why = true, nil
  if provider and not capability(provider) then
    fine, why = false, "rx-lsp has no " .. provider
  else
    fine, why = pcall(check)
  end
  report:write(fine and "ok " .. name or "not ok " .. name .. ": " .. tostring(why):gsub("\n", " "), "\n")
  report:flush()
end

local function wait(condition, what)
  assert(vim.wait(WAIT, condition, 20), "did not come: " .. what)
end

local function open(name)
  local path = vim.env.RX_WORK .. "/" .. name
  if vim.api.nvim_buf_get_name(0) ~= path then
    vim.cmd("edit! " .. path)
  end
  wait(function()
    return clients()[1] ~= nil and clients()[1].initialized ~= false and next(clients()[1].server_capabilities or {}) ~= nil
  end, "a client for " .. name)
end

local function text()
  return table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), "\n")
end

-- The cursor on the first letter of the `nth` whole word.
local function go_to(word, nth)
  local seen = 0
  for row, line in ipairs(vim.api.nvim_buf_get_lines(0, 0, -1, false)) do
    for column in line:gmatch("()%f[%w_]" .. word .. "%f[^%w_]") do
      seen = seen + 1
      if seen == (nth or 1) and not line:match("^#") then
        vim.api.nvim_win_set_cursor(0, { row, column - 1 })
        return
      elseif line:match("^#") then
        seen = seen - 1
      end
    end
  end
  error("no " .. word)
end

local function ask(method, more)
  local client = clients()[1]
  local params = vim.tbl_extend("force", vim.lsp.util.make_position_params(0, client.offset_encoding), more or {})
  for _, answer in pairs(vim.lsp.buf_request_sync(0, method, params, WAIT) or {}) do
    assert(not answer.err, vim.inspect(answer.err))
    return answer.result
  end
end

feature("attach", nil, function()
  open("conv_relu.rx")
  assert(vim.bo.filetype == "relax", "the filetype is " .. vim.bo.filetype)
end)

feature("diagnostics", nil, function()
  wait(function()
    return #vim.diagnostic.get(0) > 0
  end, "a diagnostic")
  local found = vim.diagnostic.get(0)[1]
  assert(found.lnum == 7 and found.severity == vim.diagnostic.severity.ERROR, vim.inspect(found))
  assert(found.message:find("axis 2 is 112, not 224", 1, true), found.message)
end)

feature("hover", "hoverProvider", function()
  go_to("conv")
  local answer = ask("textDocument/hover")
  assert(vim.inspect(answer):find("(1, 64, 112, 112)", 1, true), vim.inspect(answer))
end)

feature("quick fix", "codeActionProvider", function()
  local found = vim.diagnostic.get(0)[1]
  vim.api.nvim_win_set_cursor(0, { found.lnum + 1, found.col })
  local chosen = function(action)
    return action.isPreferred or action.title:find("inferred") ~= nil
  end
  if vim.fn.has("nvim-0.8") == 1 then
    vim.lsp.buf.code_action({ apply = true, context = { only = { "quickfix" } }, filter = chosen })
  else
    -- Neovim 0.7 asks the user which.
    local context = { diagnostics = vim.lsp.diagnostic.get_line_diagnostics(0), only = { "quickfix" } }
    local action = vim.tbl_filter(chosen, ask("textDocument/codeAction", { range = vim.lsp.util.make_range_params().range, context = context }))[1]
    assert(action, "no action")
    vim.lsp.util.apply_workspace_edit((action.edit and action or ask("codeAction/resolve", action)).edit, clients()[1].offset_encoding)
  end
  wait(function()
    return not text():find("(1, 64, 224, 224)", 1, true)
  end, "the fixed annotation")
  wait(function()
    return #vim.diagnostic.get(0) == 0
  end, "a text without diagnostics")
end)

feature("definition", "definitionProvider", function()
  vim.cmd("silent! write!")
  open("classifier.rx")
  go_to("logits", 2)
  local from = vim.api.nvim_win_get_cursor(0)[1]
  vim.lsp.buf.definition()
  wait(function()
    return vim.api.nvim_win_get_cursor(0)[1] == from - 1
  end, "the cursor at the definition")
end)

feature("references", "referencesProvider", function()
  open("classifier.rx")
  go_to("logits")
  local answer = ask("textDocument/references", { context = { includeDeclaration = true } })
  assert(#answer == 2, vim.inspect(answer))
end)

feature("rename", "renameProvider", function()
  open("classifier.rx")
  go_to("logits")
  vim.lsp.buf.rename("scores")
  wait(function()
    return not text():find("logits") and select(2, text():gsub("scores", "")) == 2
  end, "the new name in both places")
end)

feature("format", "documentFormattingProvider", function()
  open("classifier.rx")
  go_to("softmax")
  local row = vim.api.nvim_win_get_cursor(0)[1]
  local line = vim.api.nvim_buf_get_lines(0, row - 1, row, false)[1]
  vim.api.nvim_buf_set_lines(0, row - 1, row, false, { (line:gsub(" = ", "=", 1)) })
  if vim.lsp.buf.format then
    vim.lsp.buf.format({ timeout_ms = WAIT })
  else
    vim.lsp.buf.formatting_sync(nil, WAIT)
  end
  wait(function()
    return vim.api.nvim_buf_get_lines(0, row - 1, row, false)[1] == line
  end, "the line as it was")
end)

feature("symbols", "documentSymbolProvider", function()
  open("classifier.rx")
  local answer = ask("textDocument/documentSymbol", { textDocument = vim.lsp.util.make_text_document_params() })
  assert(answer[1].name == "main", vim.inspect(answer))
end)

feature("inlay hints", "inlayHintProvider", function()
  open("classifier.rx")
  local range = { start = { line = 0, character = 0 }, ["end"] = { line = 10, character = 0 } }
  assert(#ask("textDocument/inlayHint", { range = range }) > 0, "none")
end)

feature("run", "executeCommandProvider", function()
  open("classifier.rx")
  local params = { command = "rx.run", arguments = { vim.uri_from_bufnr(0), vim.NIL, vim.split(vim.env.RX_RUN_ARGUMENTS or "", " ", { trimempty = true }) } }
  for _, answer in pairs(vim.lsp.buf_request_sync(0, "workspace/executeCommand", params, WAIT)) do
    assert(answer.result and answer.result.ok, vim.inspect(answer))
  end
  assert(vim.fn.exists(":RxRun") == 2, "no command :RxRun")
  assert(vim.fn.exists(":RxStop") == 2, "no command :RxStop")
  local stop = { command = "rx.stop", arguments = { vim.uri_from_bufnr(0) } }
  for _, answer in pairs(vim.lsp.buf_request_sync(0, "workspace/executeCommand", stop, WAIT)) do
    assert(answer.error == nil and answer.err == nil, vim.inspect(answer))
  end
end)

feature("end", nil, function()
  for _, client in ipairs(clients()) do
    client.stop()
  end
  wait(function()
    return #clients() == 0
  end, "the end of the server")
end)

report:close()
vim.cmd("qall!")
