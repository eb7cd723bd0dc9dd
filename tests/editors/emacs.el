;;; Emacs with editors/emacs/relax.el. Writes a line per feature into $RX_REPORT.  -*- lexical-binding: t -*-

(require 'relax)
(require 'cl-lib)

(defconst wait 60 "Seconds after which what did not come does not.")

(setq eglot-sync-connect wait
      eglot-autoshutdown nil
      relax-run-arguments (split-string (or (getenv "RX_RUN_ARGUMENTS") "") " " t)
      make-backup-files nil
      create-lockfiles nil)
;; In batch mode no command ever ends, which is what `eglot-ensure' waits for.
(remove-hook 'relax-mode-hook #'eglot-ensure)

(defun report (format &rest values)
  (write-region (concat (string-replace "\n" " " (apply #'format format values)) "\n") nil (getenv "RX_REPORT") t 'quiet))

(defmacro feature (name provider &rest body)
  "Report whether BODY, which stands on PROVIDER of the server, comes to its end."
  (declare (indent 2))
  `(condition-case problem
       (progn
         (when (and ,provider (not (plist-get (eglot--capabilities (eglot-current-server)) ,provider)))
           (error "rx-lsp has no %s" (substring (symbol-name ,provider) 1)))
         ,@body
         (report "ok %s" ,name))
     (error (report "not ok %s: %s" ,name (error-message-string problem)))))

(defmacro until (what condition)
  `(let ((end (time-add nil wait)))
     (while (not ,condition)
       (when (time-less-p end nil)
         (error "did not come: %s" ,what))
       (accept-process-output nil 0.05))))

(defun visit (name)
  (switch-to-buffer (find-file-noselect (expand-file-name name (getenv "RX_WORK"))))
  (unless (eglot-managed-p)
    (call-interactively #'eglot))
  (until "a server" (eglot-managed-p)))

(defun go-to (word &optional nth)
  (goto-char (point-min))
  (re-search-forward "^def ")
  (re-search-forward (concat "\\_<" word "\\_>") nil nil nth)
  (goto-char (match-beginning 0)))

(defun ask (method &rest more)
  (jsonrpc-request (eglot-current-server) method (append (eglot--TextDocumentPositionParams) more) :timeout wait))

(feature "attach" nil
  (visit "conv_relu.rx")
  (cl-assert (eq major-mode 'relax-mode)))

(feature "diagnostics" nil
  (flymake-mode 1)
  (flymake-start)
  (until "a diagnostic" (flymake-diagnostics))
  (let ((found (car (flymake-diagnostics))))
    (cl-assert (string-search "axis 2 is 112, not 224" (flymake-diagnostic-text found)))
    (cl-assert (= 8 (line-number-at-pos (flymake-diagnostic-beg found))))))

(feature "hover" :hoverProvider
  (go-to "conv")
  (cl-assert (string-search "(1, 64, 112, 112)" (format "%s" (ask :textDocument/hover)))))

(feature "quick fix" :codeActionProvider
  (goto-char (flymake-diagnostic-beg (car (flymake-diagnostics))))
  (let ((actions (eglot-code-actions (point) (point) "quickfix")))
    (cl-assert actions)
    (eglot-execute (eglot-current-server) (car actions)))
  (until "the fixed annotation"
         (not (save-excursion (goto-char (point-min)) (search-forward "(1, 64, 224, 224)" nil t)))))

(feature "definition" :definitionProvider
  (visit "classifier.rx")
  (go-to "logits" 2)
  (let ((from (line-number-at-pos)))
    (call-interactively #'xref-find-definitions)
    (until "point at the definition" (= (line-number-at-pos) (1- from)))))

(feature "rename" :renameProvider
  (visit "classifier.rx")
  (go-to "logits")
  (eglot-rename "scores")
  (cl-assert (not (string-search "logits" (buffer-string))))
  (cl-assert (= 2 (how-many "\\_<scores\\_>" (point-min)))))

(feature "format" :documentFormattingProvider
  (visit "classifier.rx")
  (let ((before (buffer-string)))
    (go-to "gv")
    (search-forward " = ")
    (replace-match "=")
    (eglot-format-buffer)
    (cl-assert (equal before (buffer-string)))))

(feature "run" :executeCommandProvider
  (visit "classifier.rx")
  (apply #'relax-run relax-run-arguments)
  (until "the end of the run"
         (with-current-buffer (messages-buffer) (string-search " ran in " (buffer-string))))
  (cl-assert (commandp #'relax-stop))
  (relax-stop))

(feature "end" nil
  (let ((server (eglot-current-server)))
    (eglot-shutdown server nil wait)
    (cl-assert (not (jsonrpc-running-p server)))))

;; A changed buffer is no reason to stay.
(set-buffer-modified-p nil)
(kill-emacs 0)
