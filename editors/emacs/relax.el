;;; relax.el --- Relax (rx) for Emacs 29 or later, by Eglot  -*- lexical-binding: t -*-

;;; Commentary:

;; Put this file into `load-path' and add (require 'relax) to your init file.  Requires rx-lsp in PATH.

;;; Code:

(require 'eglot)
(require 'python)

(defgroup relax nil "Relax IR." :group 'languages)

(defcustom relax-server '("rx-lsp" "--stdio")
  "The language server and its arguments."
  :type '(repeat string))

(defcustom relax-run-arguments nil
  "Arguments of rxrun for every run, such as (\"--dim\" \"n=4\")."
  :type '(repeat string))

;; Relax has Python's syntax, so Python's highlighting, indentation and comments are used.
;;;###autoload
(define-derived-mode relax-mode python-mode "Relax"
  "Major mode for Relax IR.")

;;;###autoload
(add-to-list 'auto-mode-alist '("\\.rx\\'" . relax-mode))

;; Added before Python's servers, because `relax-mode' is derived from `python-mode'.
(add-to-list 'eglot-server-programs
             (cons '(relax-mode :language-id "relax")
                   (lambda (&rest _)
                     (append relax-server
                             (list :initializationOptions
                                   `(:run (:arguments ,(vconcat relax-run-arguments))))))))

(add-hook 'relax-mode-hook #'eglot-ensure)

(defun relax-run (&rest arguments)
  "Run the program in this buffer with rxrun and ARGUMENTS, and show the result."
  (interactive)
  (jsonrpc-async-request
   (eglot--current-server-or-lose) :workspace/executeCommand
   (list :command "rx.run"
         :arguments (vector (plist-get (eglot--TextDocumentIdentifier) :uri) nil (vconcat arguments)))
   :timeout nil
   :success-fn (lambda (outcome) (message "%s" (plist-get outcome :message)))
   :error-fn (lambda (problem) (message "rx: %s" (plist-get problem :message)))))

(defun relax-stop ()
  "Stop the run of the program in this buffer."
  (interactive)
  (jsonrpc-async-request
   (eglot--current-server-or-lose) :workspace/executeCommand
   (list :command "rx.stop"
         :arguments (vector (plist-get (eglot--TextDocumentIdentifier) :uri)))
   :success-fn #'ignore
   :error-fn (lambda (problem) (message "rx: %s" (plist-get problem :message)))))

(provide 'relax)

;;; relax.el ends here
