package host

import (
	"os"
	"os/exec"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/windows"

	"github.com/chela-ai/chela/internal/sandbox"
)

// tree is the processes of one program: a job object that dies with us.
type tree struct {
	mark string
	root *os.Process
	job  windows.Handle
}

func (t *tree) prepare(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: windows.CREATE_NEW_PROCESS_GROUP}
}

// started puts the program into a job. What it started before that moment is
// not in the job.
func (t *tree) started(p *os.Process) {
	t.root = p
	job, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return
	}
	info := windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION{
		BasicLimitInformation: windows.JOBOBJECT_BASIC_LIMIT_INFORMATION{
			LimitFlags: windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE,
		},
	}
	windows.SetInformationJobObject(job, windows.JobObjectExtendedLimitInformation,
		uintptr(unsafe.Pointer(&info)), uint32(unsafe.Sizeof(info)))
	h, err := windows.OpenProcess(windows.PROCESS_SET_QUOTA|windows.PROCESS_TERMINATE, false, uint32(p.Pid))
	if err != nil {
		windows.CloseHandle(job)
		return
	}
	defer windows.CloseHandle(h)
	if windows.AssignProcessToJobObject(job, h) != nil {
		windows.CloseHandle(job)
		return
	}
	t.job = job
}

func (t *tree) close() {
	if t.job != 0 {
		windows.CloseHandle(t.job)
		t.job = 0
	}
}

// term asks the program's group to end, as Ctrl+Break does.
func (t *tree) term() {
	windows.GenerateConsoleCtrlEvent(windows.CTRL_BREAK_EVENT, uint32(t.root.Pid))
}

func (t *tree) killAll() {
	if t.job != 0 {
		windows.TerminateJobObject(t.job, 1)
		return
	}
	t.root.Kill()
}

// reap ends what is left in the job. How many processes that were is not
// asked.
func (t *tree) reap(time.Duration) int {
	if t.job != 0 {
		windows.TerminateJobObject(t.job, 1)
	}
	return 0
}

func status(s *os.ProcessState) sandbox.Exit {
	if s == nil {
		return sandbox.Exit{Code: -1}
	}
	return sandbox.Exit{Code: s.ExitCode()}
}
