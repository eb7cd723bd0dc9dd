-- Relax (rx) for Neovim 0.11 or later. Copy to `~/.config/nvim/plugin/rx.lua`; needs `rx-lsp` in PATH.

vim.filetype.add({ extension = { rx = "relax" } })

vim.lsp.config("rx", {
  cmd = { "rx-lsp", "--stdio" },
  -- In Python files only `@I.ir_module`, `@R.function` and `@T.prim_func` are looked at. Remove "python" to leave them alone.
  filetypes = { "relax", "python" },
  root_markers = { ".git" },
})
vim.lsp.enable("rx")

-- Relax is written in Python's syntax: its highlighting, indentation and comments fit until rx has its own.
vim.api.nvim_create_autocmd("FileType", {
  pattern = "relax",
  callback = function(event)
    vim.bo[event.buf].commentstring = "# %s"
    vim.bo[event.buf].expandtab = true
    vim.bo[event.buf].shiftwidth = 4
    if not pcall(vim.treesitter.start, event.buf, "python") then
      vim.bo[event.buf].syntax = "python"
    end
  end,
})
