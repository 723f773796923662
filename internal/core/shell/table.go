package shell

import (
	"path"
	"slices"
	"strings"
	"sync"
)

// usage lists the options with which a program only reads files and writes to
// its output. It is for the program, not for a shell's builtin of that name.
type usage struct {
	options
	max      int    // maximum number of operands; 0: any number, -1: none
	operand  string // what every operand begins with
	searches string // options with which it reads all files below a folder; "*": always
	text     bool   // all arguments are text
}

// table lists the programs, by name.
var table = sync.OnceValue(func() map[string]usage {
	opts := func(flags, valued, long string) options { return options{flags: flags, valued: valued, long: long} }
	words := func(long string) options { return options{long: long, words: true} }
	return byName(map[string]usage{
		"echo true false printf test [": {text: true},
		"cd":                            {max: 1},
		"whoami nproc arch tty":         {max: -1},
		"pwd":                           {options: opts("LP", "", ""), max: -1},
		"uname": {options: opts("asnrvmpio", "",
			"all kernel-name nodename kernel-release kernel-version machine processor hardware-platform operating-system"),
			max: -1},
		// an operand sets it
		"hostname": {options: opts("AdfIis", "", "all-fqdns domain fqdn long all-ip-addresses ip-address short"), max: -1},
		// so does an operand without +
		"date":      {options: opts("uRI", "d", "date= utc universal iso-8601? rfc-email rfc-3339= rfc-2822"), operand: "+"},
		"id groups": {options: opts("agGnruz", "", "user group groups name real zero context")},
		"which":     {options: opts("as", "", "all")},
		"type":      {options: opts("aftpP", "", "")},
		"basename":  {options: opts("az", "s", "multiple suffix= zero")},
		"dirname":   {options: opts("z", "", "zero")},
		"realpath": {options: opts("eLmPqsz", "",
			"canonicalize-existing canonicalize-missing logical physical quiet strip no-symlinks zero relative-to= relative-base=")},
		"readlink": {options: opts("efmnqsvz", "",
			"canonicalize canonicalize-existing canonicalize-missing no-newline quiet silent verbose zero")},
		"ls": {options: opts("1AaBbCcdFfGgHhiklLmNnopQqRrSstUuvXx", "Iw",
			"all almost-all author escape block-size= ignore-backups color? directory classify? file-type format= full-time "+
				"group-directories-first no-group human-readable si dereference hide= inode ignore= kibibytes numeric-uid-gid literal indicator-style= quote-name quoting-style= reverse recursive size sort= "+
				"time= time-style= width= zero")},
		"stat": {options: opts("Lftx", "c", "dereference file-system format= printf= terse")},
		"file": {options: opts("bhikLNr0", "eF",
			"brief mime mime-type mime-encoding no-dereference dereference keep-going raw separator= exclude= no-pad print0 extension")},
		"du": {options: opts("0abcDhHklLmPsSx", "dBt",
			"null all apparent-size block-size= bytes total max-depth= human-readable inodes dereference no-dereference separate-dirs si summarize threshold= "+
				"time? exclude= one-file-system")},
		"df": {options: opts("ahHiklmPT", "Btx",
			"all block-size= human-readable si inodes local no-sync output? portability print-type total type= exclude-type=")},
		"tree": {options: words("a d f h i n p s u g D r t x l A C S N Q q F J X U c v L= I= P= noreport dirsfirst prune du inodes device ignore-case si")},
		"find": {options: words("H L P a and o or not true false print print0 ls prune depth daystart mount xdev nogroup nouser empty executable readable writable quit name= iname= path= ipath= wholename= " +
			"iwholename= regex= iregex= regextype= type= xtype= size= mtime= mmin= atime= amin= ctime= cmin= newer= anewer= cnewer= newermt= maxdepth= mindepth= perm= user= group= uid= gid= links= " +
			"inum= samefile= printf= lname= ilname= fstype=")},
		"cat": {options: opts("AbeEnstTuv", "",
			"show-all number-nonblank show-ends number squeeze-blank show-tabs show-nonprinting")},
		"tac": {options: opts("br", "s", "before regex separator=")},
		"nl": {options: opts("p", "bdfhilnsvw",
			"body-numbering= number-format= number-separator= number-width= starting-line-number= line-increment=")},
		"head tail": {options: opts("0123456789qvz", "nc", "bytes= lines= quiet silent verbose zero-terminated")},
		"wc":        {options: opts("clmLw", "", "bytes chars lines max-line-length words total=")},
		"cut": {options: opts("nsz", "bcdf",
			"bytes= characters= delimiter= fields= only-delimited complement output-delimiter= zero-terminated")},
		"tr": {options: opts("cCdst", "", "complement delete squeeze-repeats truncate-set1")},
		// a second operand is written
		"uniq": {options: opts("cdDiuz", "fsw",
			"count repeated all-repeated? group? ignore-case unique zero-terminated skip-fields= skip-chars= check-chars="),
			max: 1},
		"sort": {options: opts("bcCdfghiMmnRrsuVz", "kSt",
			"ignore-leading-blanks dictionary-order ignore-case general-numeric-sort ignore-nonprinting month-sort human-numeric-sort numeric-sort random-sort "+
				"reverse sort= version-sort check? key= merge stable buffer-size= field-separator= parallel= unique zero-terminated")},
		"comm": {options: opts("123z", "", "check-order nocheck-order output-delimiter= total zero-terminated")},
		"cmp":  {options: opts("bls", "in", "print-bytes verbose quiet silent ignore-initial= bytes=")},
		"diff": {options: opts("abBcdeEinNpqrstTuwyZ", "CUIFLW",
			"normal brief report-identical-files context? unified? ed rcs side-by-side width= left-column suppress-common-lines show-c-function "+
				"show-function-line= label= expand-tabs initial-tab recursive no-dereference new-file exclude= ignore-case ignore-tab-expansion ignore-trailing-space ignore-space-change ignore-all-space "+
				// it compares the files of two folders
				"ignore-blank-lines ignore-matching-lines= text strip-trailing-cr minimal color?"), searches: "*"},
		"grep egrep fgrep": {options: opts("0123456789abcEFGHhiILlnoPqRrsTUvVwxyz", "ABCem",
			"basic-regexp extended-regexp fixed-strings perl-regexp regexp= ignore-case no-ignore-case word-regexp line-regexp null-data "+
				"no-messages invert-match version max-count= byte-offset line-number with-filename no-filename label= only-matching quiet silent text binary-files= recursive dereference-recursive include= "+
				"exclude= exclude-dir= files-without-match files-with-matches count initial-tab null before-context= after-context= context= color? colour?"), searches: "r R --recursive " +
			"--dereference-recursive"},
		"rg": {options: opts("acFHhiIlLnNopPqsSuUvVwx0.", "ABCegmtTMEr",
			"regexp= fixed-strings ignore-case smart-case case-sensitive word-regexp line-regexp invert-match line-number no-line-number count "+
				"count-matches files files-with-matches files-without-match only-matching hidden no-ignore no-ignore-vcs glob= iglob= type= type-not= type-list max-count= max-depth= max-columns= "+
				"after-context= before-context= context= heading no-heading color= json multiline pcre2 replace= sort= sortr= stats text trim vimgrep with-filename no-filename quiet null column follow "+
				"no-messages version"), searches: "*"},
		"md5sum sha1sum sha224sum sha256sum sha384sum sha512sum b2sum": {options: opts("btz", "", "binary text tag zero")},
		"xxd":     {options: words("a b e E i u p ps c= g= l= s="), max: 1}, // a second operand is written
		"hexdump": {options: opts("bcCdovx", "ns", "canonical length= skip= no-squeezing")},
		"od": {options: opts("abcdfhiloxsv", "AjNt",
			"address-radix= skip-bytes= read-bytes= format= output-duplicates endian=")},
		"jq": {options: opts("acCejMnrsS", "",
			"ascii-output compact-output color-output exit-status join-output monochrome-output null-input raw-output raw-input slurp sort-keys tab")},
	})
})

// byName returns a map whose keys are the words of the keys of m.
func byName[T any](m map[string]T) map[string]T {
	out := make(map[string]T, 2*len(m))
	for names, v := range m {
		for name := range strings.FieldsSeq(names) {
			out[name] = v
		}
	}
	return out
}

// Reads reports whether a program is in the table, with these arguments. An
// argument that is not known is taken for an operand: the command must be
// confined.
func Reads(argv []Word) bool {
	reason, _ := reads(argv)
	return reason == ""
}

// reads is [Reads]. It returns the reason why a program may do more than read,
// and whether it reads all files below a folder.
func reads(argv []Word) (reason string, searches bool) {
	name := program(argv[0].Text)
	u, ok := table()[name]
	if !ok || !known(argv[0]) {
		return Escape(argv[0].Text) + " may change files", false
	}
	if u.text {
		return "", false
	}
	args, operands, only := texts(argv[1:]), 0, false // only operands follow
	for i, x := range argv[1:] {
		if !known(x) {
			args[i] = "*"
		}
	}
	searches = u.searches == "*"
	for len(args) > 0 {
		size := 1
		switch a := args[0]; {
		case only || !isOption(a):
			operands++
			if u.max < 0 || u.max > 0 && operands > u.max || !strings.HasPrefix(a, u.operand) ||
				name == "jq" && readsModules(a) {
				return name + " with these arguments may do more than read", false
			}
		case a == "--":
			only = true
		default:
			opt := u.next(args)
			if size = opt.size; !opt.known {
				return name + " " + Escape(a) + " may do more than read", false
			}
			searches = searches || slices.ContainsFunc(strings.Fields(u.searches), func(s string) bool {
				return s == opt.name || !strings.HasPrefix(opt.name, "--") && strings.Contains(opt.name, s)
			})
		}
		args = args[size:]
	}
	return "", searches
}

// program returns the name by which the table knows a command, or "" if the
// path is not in a system program folder.
func program(name string) string {
	switch dir, base := path.Split(name); dir {
	case "", "/bin/", "/usr/bin/":
		return base
	}
	return ""
}

// readsModules reports whether a filter of jq may read other files.
func readsModules(filter string) bool {
	return strings.Contains(filter, "import") || strings.Contains(filter, "include") ||
		strings.Contains(filter, "modulemeta")
}
