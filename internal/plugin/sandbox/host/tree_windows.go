package host

import (
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/windows"

	"github.com/chela-ai/chela/internal/core/sandbox"
)

// tree is a program and its descendants: a job object that is closed when
// this process ends.
type tree struct {
	mark string
	tty  bool // never
	root *os.Process

	mu  sync.Mutex
	job windows.Handle // 0: not created, or closed
}

// run starts the program and assigns it to a job. Processes that the program
// started before that are not in the job.
func (t *tree) run(cmd *exec.Cmd, _ token) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: windows.CREATE_NEW_PROCESS_GROUP}
	if err := cmd.Start(); err != nil {
		return err
	}
	t.root = cmd.Process
	t.job = newJob(uint32(cmd.Process.Pid))
	return nil
}

// newJob returns a job that contains the process, or 0.
func newJob(pid uint32) windows.Handle {
	job, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return 0
	}
	info := windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION{
		BasicLimitInformation: windows.JOBOBJECT_BASIC_LIMIT_INFORMATION{
			LimitFlags: windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE,
		},
	}
	windows.SetInformationJobObject(job, windows.JobObjectExtendedLimitInformation,
		uintptr(unsafe.Pointer(&info)), uint32(unsafe.Sizeof(info)))
	h, err := windows.OpenProcess(windows.PROCESS_SET_QUOTA|windows.PROCESS_TERMINATE, false, pid)
	if err != nil {
		windows.CloseHandle(job)
		return 0
	}
	defer windows.CloseHandle(h)
	if windows.AssignProcessToJobObject(job, h) != nil {
		windows.CloseHandle(job)
		return 0
	}
	return job
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
		return
	}
	t.root.Kill()
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
