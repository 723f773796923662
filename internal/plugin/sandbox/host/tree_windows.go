package host

import (
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/windows"

	"github.com/chela-ai/chela/internal/core/sandbox"
	"github.com/chela-ai/chela/internal/plugin/sandbox/stdio"
)

// tree is a program and its descendants: a job object that is closed when
// this process ends.
type tree struct {
	mark string
	tty  bool // never
	root *os.Process

	mu  sync.Mutex
	job windows.Handle // 0: closed
}

// Limits of a job.
const (
	maxProcesses = 4096
	// The programs cannot log the person off, or change settings of the screen, the
	// system and its desktops. They have the clipboard and other programs' windows,
	// which a command that a person allowed may be about.
	uiLimits = windows.JOB_OBJECT_UILIMIT_EXITWINDOWS | windows.JOB_OBJECT_UILIMIT_DISPLAYSETTINGS |
		windows.JOB_OBJECT_UILIMIT_SYSTEMPARAMETERS | windows.JOB_OBJECT_UILIMIT_DESKTOP
)

// run starts the program in a job. It does not run before it is in the job, so
// that everything that it starts is there, too.
func (t *tree) run(cmd *exec.Cmd, _ *stdio.Streams) error {
	job, err := newJob()
	if err != nil {
		return fmt.Errorf("job object: %w", err)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: windows.CREATE_NEW_PROCESS_GROUP | windows.CREATE_SUSPENDED}
	if err := cmd.Start(); err != nil {
		windows.CloseHandle(job)
		return err
	}
	pid := uint32(cmd.Process.Pid)
	if err = assign(job, pid); err == nil {
		err = resume(pid)
	}
	if err != nil {
		cmd.Process.Kill()
		cmd.Wait()
		windows.CloseHandle(job)
		return fmt.Errorf("job object: %w", err)
	}
	t.root, t.job = cmd.Process, job
	return nil
}

// newJob returns a job with limits, whose processes end when it is closed.
func newJob() (windows.Handle, error) {
	job, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return 0, err
	}
	limits := windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION{
		BasicLimitInformation: windows.JOBOBJECT_BASIC_LIMIT_INFORMATION{
			LimitFlags:         windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE | windows.JOB_OBJECT_LIMIT_ACTIVE_PROCESS,
			ActiveProcessLimit: maxProcesses,
		},
	}
	ui := windows.JOBOBJECT_BASIC_UI_RESTRICTIONS{UIRestrictionsClass: uiLimits}
	_, err = windows.SetInformationJobObject(job, windows.JobObjectExtendedLimitInformation,
		uintptr(unsafe.Pointer(&limits)), uint32(unsafe.Sizeof(limits)))
	if err == nil {
		_, err = windows.SetInformationJobObject(job, windows.JobObjectBasicUIRestrictions, uintptr(unsafe.Pointer(&ui)),
			uint32(unsafe.Sizeof(ui)))
	}
	if err != nil {
		windows.CloseHandle(job)
		return 0, err
	}
	return job, nil
}

// assign puts a process into a job.
func assign(job windows.Handle, pid uint32) error {
	h, err := windows.OpenProcess(windows.PROCESS_SET_QUOTA|windows.PROCESS_TERMINATE, false, pid)
	if err != nil {
		return err
	}
	defer windows.CloseHandle(h)
	return windows.AssignProcessToJobObject(job, h)
}

// resume starts the only thread of a process that was created suspended.
// Package os does not keep its handle.
func resume(pid uint32) error {
	all, err := windows.CreateToolhelp32Snapshot(windows.TH32CS_SNAPTHREAD, 0)
	if err != nil {
		return err
	}
	defer windows.CloseHandle(all)
	e := windows.ThreadEntry32{}
	e.Size = uint32(unsafe.Sizeof(e))
	for err = windows.Thread32First(all, &e); err == nil; err = windows.Thread32Next(all, &e) {
		if e.OwnerProcessID != pid {
			continue
		}
		thread, err := windows.OpenThread(windows.THREAD_SUSPEND_RESUME, false, e.ThreadID)
		if err != nil {
			return err
		}
		defer windows.CloseHandle(thread)
		_, err = windows.ResumeThread(thread)
		return err
	}
	return fmt.Errorf("the thread of process %d: %w", pid, err)
}

// term asks the program's group to end, as Ctrl+Break does.
func (t *tree) term() {
	windows.GenerateConsoleCtrlEvent(windows.CTRL_BREAK_EVENT, uint32(t.root.Pid))
}

func (t *tree) kill() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.job != 0 {
		windows.TerminateJobObject(t.job, 1)
	}
}

// reap ends the remaining processes of the job. Their number is not
// determined.
func (t *tree) reap(time.Duration) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.job != 0 {
		windows.TerminateJobObject(t.job, 1)
		windows.CloseHandle(t.job)
		t.job = 0
	}
	return 0
}

func status(s *os.ProcessState) sandbox.Exit {
	if s == nil {
		return sandbox.Exit{Code: -1}
	}
	return sandbox.Exit{Code: s.ExitCode()}
}
