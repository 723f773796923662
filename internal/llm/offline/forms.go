package offline

import (
	"regexp"
	"sync"
)

// patterns are the forms that texts are taken apart with, beside the table.
type patterns struct {
	codeForm    *regexp.Regexp
	urlForm     *regexp.Regexp
	quoteForm   *regexp.Regexp
	singleForm  *regexp.Regexp
	tokenForm   *regexp.Regexp
	hanForm     *regexp.Regexp
	hanVerbs    *regexp.Regexp
	extForm     *regexp.Regexp
	quotient    *regexp.Regexp
	spacedPath  *regexp.Regexp // a name with blanks, in quotes
	wordPaths   *regexp.Regexp
	noPaths     *regexp.Regexp
	politeHead  *regexp.Regexp
	groupName   *regexp.Regexp
	tellMe      *regexp.Regexp
	politeTail  *regexp.Regexp
	latinWord   *regexp.Regexp
	strongSplit *regexp.Regexp
	weakSplit   *regexp.Regexp
	againForm   *regexp.Regexp
	moreForm    *regexp.Regexp
	nthForm     *regexp.Regexp
	numbered    *regexp.Regexp
	moreAt      *regexp.Regexp
	exitCode    *regexp.Regexp
	listEntry   *regexp.Regexp
	grepEntry   *regexp.Regexp
}

// forms compiles the patterns when they are needed first, and not at the
// start of every process.
var forms = sync.OnceValue(func() *patterns {
	return &patterns{
		codeForm:   regexp.MustCompile("(?s)```(?:[a-z]*\n)?(.+?)```|`([^`\n]+)`"),
		urlForm:    regexp.MustCompile(`(?i)\b(?:https?://|www\.)[^\s<>"'“”‘’，。！？；、（）\x{4e00}-\x{9fff}]+`),
		quoteForm:  regexp.MustCompile(`"([^"\n]*)"|“([^”]*)”|‘([^’]*)’|「([^」]*)」|『([^』]*)』|《([^》]*)》`),
		singleForm: regexp.MustCompile(`(^|[\s:：,，(（]|\p{Han})'([^'\n]*)'([\s.,:;!?，。；：！？)）]|\p{Han}|$)`),
		tokenForm:  regexp.MustCompile(`[\w~.*/\-][\w~.*/\-+@]*`),
		hanForm:    regexp.MustCompile(`[\p{Han}\w\-]*\p{Han}[\p{Han}\w\-]*\.[A-Za-z][A-Za-z0-9]{0,5}`),
		hanVerbs:   regexp.MustCompile(`^(?:请|帮我|麻烦|看看|看一下|看下|看|读取|读一下|读|一下|下|这个|那个|叫作|改名为|打开|查看|显示|展示|创建|新建|建立|写一个|写入|写|生成|编辑|修改|追加到|保存到|保存为|存到|把|将|在|往|向|给|从|对|用|和|与|及|跟|到|叫做|叫|名为|文件|一个|个|删除|删掉|复制|移动|重命名为|里的|下的|的|中|我|搜索|查找|找)+`),
		extForm:    regexp.MustCompile(`^\.?[\w\-+*]+(?:\.[\w\-]+)*\.[A-Za-z][A-Za-z0-9]{0,9}$|^\.[A-Za-z][\w\-]+$`),
		quotient:   regexp.MustCompile(`(\d)\s+/\s+(\d)`),
		spacedPath: regexp.MustCompile(`^[\p{L}\p{N}_\-]+(?: [\p{L}\p{N}_\-]+){1,4}\.[A-Za-z]{2,4}$`),
		wordPaths:  regexp.MustCompile(`(?i)^(?:readme|makefile|dockerfile|license|changelog)$`),
		noPaths:    regexp.MustCompile(`(?i)^(?:e\.g|i\.e|a\.m|p\.m|etc|vs|and/or|or/and|yes/no|he/she|his/her|either/or|on/off|n/a|w/o|tcp/ip|i/o)$`),
		politeHead: regexp.MustCompile(`(?i)^(?:first(?: of all)?|to begin|please|pls|plz|kindly|hey|hi|hello|ok(?:ay)?|so|well|now|just|also|then|and|chela|` +
			`(?:could|can|may|might) i(?: please)?|(?:could|can|would|will) (?:you|u)(?: be so kind(?: as)? to| mind| possibly)?|would you be able to|are you able to|do you mind|may i ask you to|` +
			`(?:i'd|i would) (?:like|love|want|need)(?: for)?(?: you)?(?: to)?|i (?:want|need|wish)(?: you)? to|i wanna|let's|let us|go ahead and|help me(?: to)?|try to|quickly|` +
			`i was wondering if you could|is it possible to|` +
			`首先|先|请问|请帮我|请给我|请你?|麻烦你?(?:一下)?|拜托你?|劳驾|帮我|帮忙|帮|能不能|能否|可不可以|可以|你?能(?:不能)?(?:帮我|给我)|你可以|请问|你好|那么|现在|给我|我想要?(?:让你|请你|你)?|我要你?|我需要你?|快|再)[\s,，:：]*`),
		groupName: regexp.MustCompile(`\(\?P<(\w+)>`),
		tellMe:    regexp.MustCompile(`(?is)^(?:tell me|let me know|know|find out|i wonder|say|explain)\s+((?:what|how|which|where|who|when|whether|if)\b.*)$`),
		politeTail: regexp.MustCompile(`(?i)[\s,，]*(?:please|pls|plz|thanks(?: a lot)?|thank you|thx|for me|if you (?:can|could|don't mind)|would you|could you|will you|right now|now|ok(?:ay)?|` +
			`好吗|好么|可以吗|行吗|行不行|好不好|谢谢你?|多谢|谢了|吧|呗|呢|吗|嘛|啊|呀|哦|一下)?[\s.!?。！？~]*$`),
		latinWord:   regexp.MustCompile(`[A-Za-z]{3,}`),
		strongSplit: regexp.MustCompile(`(?i)[\s,;，；。.]*(?:\b(?:and then|then|after that|afterwards|after which|next,|and finally|finally)\b|然后再?|[，,]\s*(?:再|接着|然后)|接着再?|随后|之后再|[，,；。]\s*最后再?|完成后|[;；\n]+|[.!?] +(?:now |please )?|[。！？])[\s,，]*`),
		weakSplit:   regexp.MustCompile(`(?i)\s*(?:,?\s+(?:and|&)(?: also)? |,\s*also |，|,\s+|并且|同时|以及|顺便|并|再)\s*`),
		againForm:   regexp.MustCompile(`(?i)^(?:(?:do|run|try|say|repeat|show)?\s*(?:me )?(?:that|it|this)?\s*(?:once more|one more time|again)|repeat(?: that| it| the last (?:one|request|command))?|retry|redo(?: it| that)?|same again|(?:再|重新?)(?:来|试|做|执行|运行|跑|说|看|查)(?:一次|一遍|一下|一回|试)?|重试|重复(?:一次|一遍|一下)?|再一次|(?:来|试|做|执行|运行|跑|查|看)一[次遍])$`),
		moreForm:    regexp.MustCompile(`(?i)^(?:(?:show|give|read|see|tell)?\s*(?:me )?(?:some )?more(?: of it| lines| please)?|continue(?: reading)?|go on|keep (?:going|reading)|next(?: page| part| lines)?|(?:show )?(?:me )?the (?:rest|next (?:page|part))(?: of it)?|read on|(?:请)?继续(?:读|看|显示)?|更多|下一页|还有(?:呢|吗)?|接着(?:看|读)?|往下(?:看|读)?|(?:显示|看)?(?:剩下|其余|后面)的?(?:内容|部分)?|再多(?:看|显示)?一?点)$`),
		nthForm:     regexp.MustCompile(macros.Replace(`(?i)^(?:{see}|{看}|what(?:'s| is) in|选|选择|pick|choose|use)?(?: me)?(?: at)?\s*(?:(?:the )?(?P<word>first|second|third|fourth|fifth|sixth|seventh|eighth|ninth|tenth|last)(?: (?:one|file|result|entry|item|match|folder|of them))?|(?:the )?(?P<num>\d+)(?:st|nd|rd|th)(?: (?:one|file|result|entry|item|match))?|(?:number|no\.?|#)\s*(?P<num2>\d+)|(?:一下)?第\s*(?P<zh>[一二两三四五六七八九十\d]+)\s*(?:个|条|项|份)?(?:文件|结果)?|(?P<zhlast>最后)(?:一个|那个|一项|一条)(?:文件)?)$`)),
		numbered:    regexp.MustCompile(`(?m)^ *(\d+)\t`),
		moreAt:      regexp.MustCompile(`More lines follow: use offset (\d+)`),
		exitCode:    regexp.MustCompile(`\[exit code (\d+)[^\]]*\]\s*$`),
		listEntry:   regexp.MustCompile(`^\[(folder|file|link)\] (.*?)(?: \([^()]*\)| -> .*)?$`),
		grepEntry:   regexp.MustCompile(`^(.+?):\d+: `),
	}
})

// lazily is a pattern that is compiled when it is used first.
type lazily struct{ get func() *regexp.Regexp }

// lazy returns the pattern of an expression.
func lazy(expr string) lazily {
	return lazily{sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })}
}

// cut returns the named groups of the first match and the text without it; nil
// when there is none.
func (l lazily) cut(s string) (map[string]string, string) {
	m := l.get().FindStringSubmatchIndex(s)
	if m == nil {
		return nil, s
	}
	groups := map[string]string{}
	for i, name := range l.get().SubexpNames() {
		if name != "" && m[2*i] >= 0 {
			groups[name] = s[m[2*i]:m[2*i+1]]
		}
	}
	return groups, s[:m[0]] + s[m[1]:]
}
