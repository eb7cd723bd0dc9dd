-- Relax (rx) for Neovim 0.7 or later. Copy to `~/.config/nvim/plugin/rx.lua`. Requires `rx-lsp` in PATH.

local config = {
  name = "rx",
  cmd = { "rx-lsp", "--stdio" },
  -- The settings, for example { run = { arguments = { "--dim", "n=4" } } }.
  init_options = {},
}

-- In Python files, only `@I.ir_module`, `@R.function` and `@T.prim_func` are checked. Remove "python" to not check Python files.
local filetypes = { "relax", "python" }

-- Files that mark the root folder of a project.
local markers = { "rx.toml", ".git" }

-- Highlighting and folds use rx's tree-sitter grammar if it is installed (README.md), otherwise Python's.
local function colour(buffer)
  vim.bo[buffer].commentstring = "# %s"
  vim.bo[buffer].expandtab = true
  vim.bo[buffer].shiftwidth = 4
  local treesitter = vim.treesitter and vim.treesitter.start
  if not (treesitter and (pcall(treesitter, buffer, "rx") or pcall(treesitter, buffer, "python"))) then
    vim.bo[buffer].syntax = "python"
  end
end

local client
local function start(buffer)
  if vim.lsp.start then
    local found = vim.fs.find(markers, { upward = true, path = vim.fs.dirname(vim.api.nvim_buf_get_name(buffer)) })[1]
    config.root_dir = found and vim.fs.dirname(found)
    vim.lsp.start(config, { bufnr = buffer })
  else
    -- Neovim 0.7: one server for all buffers.
    client = client or vim.lsp.start_client(config)
    if client then
      vim.lsp.buf_attach_client(buffer, client)
    end
  end
end

if vim.treesitter and vim.treesitter.language and vim.treesitter.language.register then
  vim.treesitter.language.register("rx", "relax")
end

local group = vim.api.nvim_create_augroup("rx", {})
if vim.fn.has("nvim-0.8") == 1 then
  vim.filetype.add({ extension = { rx = "relax" } })
else
  vim.api.nvim_create_autocmd({ "BufRead", "BufNewFile" }, { group = group, pattern = "*.rx", command = "setfiletype relax" })
end
vim.api.nvim_create_autocmd("FileType", {
  group = group,
  pattern = "relax",
  callback = function(event)
    colour(event.buf)
  end,
})
if vim.lsp.config then
  config.filetypes = filetypes
  config.root_markers = markers
  vim.lsp.config("rx", config)
  vim.lsp.enable("rx")
else
  vim.api.nvim_create_autocmd("FileType", {
    group = group,
    pattern = filetypes,
    callback = function(event)
      start(event.buf)
    end,
  })
end

-- `:RxRun --dim n=4` runs the program with `rxrun`; the server shows the result as a message.
vim.api.nvim_create_user_command("RxRun", function(command)
  local params = { command = "rx.run", arguments = { vim.uri_from_bufnr(0), vim.NIL, command.fargs } }
  vim.lsp.buf_request(0, "workspace/executeCommand", params, function() end)
end, { nargs = "*", desc = "Run the Relax program in this buffer" })

vim.api.nvim_create_user_command("RxStop", function()
  local params = { command = "rx.stop", arguments = { vim.uri_from_bufnr(0) } }
  vim.lsp.buf_request(0, "workspace/executeCommand", params, function() end)
end, { desc = "Stop the run of the program in this buffer" })
