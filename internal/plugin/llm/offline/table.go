package offline

import (
	"regexp"
	"strings"
)

// row is an intent: its patterns, one per line, and its plan. In patterns {P}
// is a path, {Q} a quoted text, {U} a URL and {X} any of them. Groups are
// slots.
type row struct {
	intent   string
	example  localized // for help; empty: not listed
	needs    string    // required tools
	patterns string
	// plan returns the step, or nil if the row does not apply after all.
	plan             func(t *turn, m match) *step
	words            string // that the plan knows besides plain ones, as an expression
	wholeMessage     bool   // only matches a whole message
	freeText         bool   // ends with free text, so conjunctions do not separate requests
	freeTextUnquoted bool   // the same, if there is no quoted text
	checks           bool   // its plan checks that it understands all words
	guesses          bool   // may match what is no request to it
	repeats          bool   // its verb is said once for several objects
	forms, chinese   []func() *regexp.Regexp
	known            func() *regexp.Regexp // the words
}

var macros = strings.NewReplacer(
	"{w}", `[^\x{E000}-\x{E3FF}]`, "{P}", `[\x{E000}-\x{E0FF}]`, "{Q}", `[\x{E000}-\x{E1FF}\x{E300}-\x{E3FF}]`,
	"{U}", `[\x{E200}-\x{E2FF}]`,
	"{X}", `[\x{E000}-\x{E3FF}]`,
	"{name}", `(?:[\x{E000}-\x{E3FF}]|[\w./\-]+)`,
	"{file}", `(?:(?:an?|the|my|new|empty|text|file|note|document|script|called|named|titled|as|of)\s+)*:?\s*`,
	"{is}", `\s*(?:(?:and|which|that|it should|,|:|;)\s*)*(?:with|containing|contains?|saying|says?|reading|holding|has|having|put|write)?\s*`+
		`(?:(?:the|this|following|content|contents|text|words?|lines?|in it|into it|of|being|is|:)(?:\s+|$))*(?:(?:contents?|texts?|words?|lines?|following)\s*:)?:?\s*`,
	"{in}", `\s*(?:这个)?(?:文件夹|文件|目录)?(?:里面?|里头|中|内|下面?|底下)?的?\s*`,
	"{是}", `[，,、。;；\s]*(?:并且?|然后)?(?:在?(?:里面?|其中))?的?(?:内容|文字|文本)?(?:写[入上着]?|填入|放入|包含|存)?(?:内容|文字)?[是为]?[:：,，\s]*`,
	"{个}", `(?:一?[下个份篇条行句项张]|新的?|空白?的?|文本|文件|文档|笔记|脚本|叫做?|名[为叫]|命名为|[:：\s])*`,
	"{seek}", `(?:search|grep|scan|look|hunt|check|find|seek|rg)`,
	"{the}", `(?:(?:any|all|every|the|an?|of|for|words?|texts?|strings?|phrases?|functions?|mentions?|occurrences?|uses|lines?|with) )*`,
	"{change}", `(?:replace|substitute|swap|change|turn|correct|fix|update|modify)\s+(?:the )?(?:word |text |value |line )?`,
	"{to}", `\s+(?:with|by|for|to|into)\s+`, "{改}", `\s*(?:全部|都|统统)?(?:改成|改为|替换[成为]|换[成为]|修改[成为])\s*`,
	"{fact}", `(?:\s+(?:that|this|the following|of|down|for later))*\s*[:,]?\s*`,
	"{cancel}", `(?:cancel|delete|remove|drop|stop|forget|clear|kill|turn off|get rid of)`, "{all}",
	`(?:(?:the|my|that|this|all|any|every|of|scheduled|cron)\s+)*`,
	"{job}", `(?:reminders?|alarms?|timers?|(?:scheduled |cron )?jobs?|watch)`, "{about}",
	`\s*(?:(?:about|to|for|of|named|called|that|when|with|is)\b\s*)*[:,]?\s*`,
	"{取消}", `(?:取消|删除|删掉?|去掉|移除|撤[销掉]|停[止掉]|关[掉闭]|清除)`, "{那}", `(?:一下|掉|那[个些]|这[个些]|我的?|所有|全部|的|\s)*`,
	"{提醒}", `(?:提醒|闹[钟铃]|定时(?:任务|器)?|计时器?|计划(?:任务)?|日程|安排|监视|监控)`, "{页}", `(?:文件|网页|页面|网站|网址|链接)?`,
	"{prog}", `(?:git|npm|pip3?|docker|df|du|ps|pwd|whoami|uname|uptime|echo|curl|python3?|cargo|kubectl|wc|head|tail|mkdir|rm|mv|cp|touch|chmod|`+
		`sed|awk|grep -\w+|ls -\w+|free -\w+|go (?:test|build|run|vet|version|env|mod|fmt|list)|make (?:test|build|all|clean|lint))\b`,
	"{搜}", `(?:搜索|检索|查找|寻找|搜|查|找|grep)(?:一下|下|出|到|找)?(?:所有|全部)?(?:包含|含有|提到|出现)?的?(?:关键[词字]|文字|内容)?[:：\s]*`,
)

// table returns the intents, in the order in which they are tried.
func table() []row {
	rows := []row{
		{intent: "help", wholeMessage: true, plan: func(t *turn, _ match) *step { return &step{answer: t.help()} },
			patterns: `
			^(?:/?help(?: me)?|\?+|commands|menu|capabilities|examples?)$
			what (?:all |else )?(?:can|could|do|are) (?:you|u) (?:do\b|able|help|capable|offer|support|know how|understand)
			how (?:do|can|should) i (?:use|talk to) (?:you|this)|what can i (?:ask|say|do)|what (?:commands|requests)\b|your (?:commands|abilities)
			^(?:帮助|使用说明|说明|功能(?:列表)?|菜单|命令列表)$|(?:什么|哪些|啥)(?:功能|本事|能力|命令|技能)|怎么用你?$|(?:能|会|可以)(?:帮我|为我|[做干]|些|点|一些)*(?:什么|啥|哪些)
			^(?:who|what) are (?:you|u)\b|are you (?:an? )?(?:ai|bot|robot|human|real|llm|language model|chatgpt|gpt|claude)|your name
			你(?:到底|究竟)?是(?:谁|什么|啥|不是|真人|人|机器)|你叫(?:什么|啥)|介绍(?:一下)?你?自己`},
		{intent: "undo", wholeMessage: true,
			plan: func(t *turn, _ match) *step { return &step{answer: t.localize(undoText), unable: true} }, patterns: `
			^(?:undo|revert|take back|roll back|put back)(?: (?:that|this|it|everything|(?:(?:the|my|your|all) )*(?:last |latest |previous )?(?:changes?|edits?|turns?|steps?|actions?)))?(?: back)?$
			^(?:take|put|roll) (?:that|this|it) back$
			^(?:撤[销回]|还原|恢复|回退)(?:一下)?(?:刚才|刚刚|上[一次]?[次步]?|最后一?[次步]?|这次|所有|全部)?的?(?:修改|改动|更改|操作|变更)?$`},
		{intent: "accept", wholeMessage: true, plan: accept, patterns: `
			^(?:yes|y|yep|yeah|sure|ok(?:ay)?|do (?:it|that)|go ahead|confirm(?:ed)?|(?:remove|delete|forget) (?:it|them|that))[\s.!]*$
			^(?:是的?|好的?|对的?|确定|确认|可以|行|嗯|同意|删吧|删除吧?|删掉吧?)[\s。！!]*$`},
		{intent: "decline", wholeMessage: true, plan: decline, patterns: `
			^(?:no|n|nope|cancel|stop|don'?t|do not|keep (?:it|them))[\s.!]*$
			^(?:不|不要|不是|不用|不行|别|取消|算了|留着)[\s。！!吧]*$`},
		{intent: "greet", wholeMessage: true, plan: greet, patterns: `
			^(?:(?:hi+|hello+|hey+|hiya|yo|howdy|greetings|good (?:morning|afternoon|evening|day)|morning|there|chela|again|everyone
			|all)[\s,.!?~]*)+$
			^(?:how are (?:you|u)|how'?s it going|what'?s up|nice to meet you)\b
			^(?:(?:你好|您好|嗨|哈[喽啰]|喂|早上好|早安?|[上中下]午好|晚上好|在吗|在不在|大家好|最近怎么样|助手|chela|[啊呀吗呢])[\s，,!！。.~？?]*)+$`},
		{intent: "thanks", wholeMessage: true, plan: respond(thanksText), patterns: `
			^(?:(?:ok|okay|great|perfect|cool|nice|good|many|well)[\s,.!]+)*(?:thanks|thank (?:you|u)|thx|ty|cheers
			|(?:i )?appreciate it)\b[\w\s,.!']{0,40}$
			^(?:well done|good (?:job|work)|great|perfect|awesome|nice|cool|excellent)[\s!.]*$
			^(?:好的?|太|真是?|非常|十分|麻烦你?了?|[，,\s])*(?:谢谢|谢[啦了]|多谢|感谢|感激|辛苦|太?棒了|干得好|做得好)(?:谢谢|多谢|感谢|[你您啦了的]|大家|[\s!！。.~，,])*$`},
		{intent: "planned", needs: "cron", example: localized{"what is planned?", "有什么计划？"}, plan: planned, patterns: `
			^what(?:'?s| is| are| do i have| have you| did you| have i)?(?: currently)? (?:plan(?:ned)?|scheduled?|coming up|on (?:my|the|your) (?:schedule|agenda|list of reminders))\b[^\x{E000}-\x{E3FF}]{0,30}$|^(?:my |the )?(?:reminders|schedule|agenda|alarms)$
			^(?:list|show|see|display|view|check|which|what|are there|do i have|have i)\b{w}*\b(?:reminders|alarms|timers|(?:scheduled|cron|planned) (?:jobs|tasks)|what(?:'?s| is) planned){w}*$
			^(?:list|show|see|display|view|check)(?: me)?(?: my| the)? (?:schedule|agenda)$
			^(?:我|都|还|现在|目前|今天|明天|一共)*有(?:什么|哪些|没有|啥|几个|多少)?(?:个)?{提醒}$|^(?:我的)?{提醒}(?:列表|清单|(?:都|总共)?有(?:哪些|什么|多少|几个))?$|(?:有|设了?|定了?)(?:什么|哪些|多少|几个){提醒}
			^(?:列出|列一下|查看|显示|看看|看一?下)(?:一下|所有|全部|我的|有哪些|的)*{提醒}(?:列表|清单)?$`},
		{intent: "cancel", needs: "cron", freeText: true, example: localized{"cancel the reminder about Ann", "取消关于小安的提醒"},
			plan: cancel, patterns: `
			^{cancel}\s+{all}{job}\b{about}(?P<q>.*)$|^{cancel}\s+{all}(?P<q2>.+?)\s+{job}$
			^stop\s+(?:reminding|telling|notifying|alerting)\s+me\b{about}(?P<q>.*)$|^(?:stop|quit)\s+(?:watching|monitoring)\s+(?:the )?(?:file |page |site )?(?P<q2>.+)$
			^(?:cancel|stop|delete) (?P<last>it|that|this)$
			^{取消}{那}{提醒}[:：，,\s]*(?P<q>.*)$|^{取消}{那}(?:关于|有关)?(?P<q2>.+?)(?:的|那个|这个)*{提醒}$|^[把将](?:关于)?(?P<q3>.*?)(?:的|那个|这个)*{提醒}(?:都|给)?{取消}[掉了吧]*$
			^(?:别|不要|不用|不必|停止)再?(?:提醒|通知|告诉|叫)我(?P<q>.*?)了?$|^(?:别|不要|不用|停止|取消)再?(?:监视|监控|盯着?|关注)(?:文件|网页)?(?P<q2>.+?)了?$`},
		{intent: "pause", needs: "cron", freeText: true, example: localized{"pause the reminder about Ann", "暂停关于小安的提醒"},
			plan: pause, patterns: `
			^(?:pause|suspend|disable|deactivate|mute)\s+{all}{job}\b{about}(?P<q>.*)$|^(?:pause|suspend|disable|deactivate|mute)\s+{all}(?P<q2>.+?)\s+{job}$|^(?:pause|suspend|disable) (?P<last>it|that|this)$
			^(?:暂停|停用|禁用|先停[掉下])(?:一下)?{那}{提醒}[:：，,\s]*(?P<q>.*)$|^(?:暂停|停用|禁用|先停[掉下])(?:一下)?{那}(?:关于|有关)?(?P<q2>.+?)(?:的|那个|这个)*{提醒}$`},
		{intent: "resume", needs: "cron", freeText: true, example: localized{"resume the reminder about Ann", "恢复关于小安的提醒"},
			plan: resume, patterns: `
			^(?:resume|unpause|(?:re-?)?enable|(?:re)?activate|continue)\s+{all}{job}\b{about}(?P<q>.*)$|^(?:resume|unpause|(?:re-?)?enable|(?:re)?activate|continue)\s+{all}(?P<q2>.+?)\s+{job}$|^(?:resume|unpause|enable|reactivate) (?P<last>it|that|this)$
			^(?:重新)?(?:恢复|启用|继续|开启)(?:一下)?{那}{提醒}[:：，,\s]*(?P<q>.*)$|^(?:重新)?(?:恢复|启用|继续|开启)(?:一下)?{那}(?:关于|有关)?(?P<q2>.+?)(?:的|那个|这个)*{提醒}$`},
		{intent: "run now", needs: "cron", freeText: true,
			example: localized{"run the reminder about Ann now", "立即执行关于小安的提醒"}, plan: runNow, patterns: `
			^(?:run|trigger|fire|execute)\s+(?:the|my|that|this)\s+(?:scheduled |cron )?{job}\b{about}(?P<q>.*?)(?:\s+(?:right )?now)?$
			^(?:run|trigger|fire|execute)\s+(?:the|my|that|this)\s+(?P<q>[^\x{E000}-\x{E3FF}]+?)\s+(?:reminder|alarm|scheduled job|cron job)(?:\s+(?:right )?now)?$
			^(?:现在|立即|立刻|马上)*(?:就)?(?:运行|执行|触发)(?:一下)?{那}(?:关于|有关)?(?P<q>.*?)的?{提醒}$`},
		{intent: "watch", needs: "cron", freeText: true,
			example: localized{"tell me when notes.txt changes", "notes.txt 变化时告诉我"}, plan: watch, patterns: `
			^(?:watch|monitor|observe|track|keep (?:an eye on|watching))\s+(?:(?:the|a|my|this|web|file|page|site|website|url|document)\s+)*(?P<x>{X})(?:\s+for (?:any )?(?:changes?|updates?))?(?:,?\s*(?:and|then)\s+(?:tell|let|notify|alert|inform|ping|remind|warn)\s+me\b.*)?$
			^(?:(?:tell|notify|alert|inform|ping|message|warn|remind) me\s+|let me know\s+)?(?:when(?:ever)?|if|once|as soon as|(?:each|every|any) ?time)\s+(?:(?:the|a|my|this|web|file|page|site|website|url|document)\s+)*(?P<x>{X})\s+(?:(?:is|gets|was|has been|has|are)\s+)?(?:chang(?:es?|ed)|modified|updated?s?|edited|touched)(?:,?\s*(?:then\s+|please\s+)*(?P<do>.*))?$
			^(?:当|如果|一旦|只要|要是|等到?)?\s*(?:这个|那个)?{页}\s*(?P<x>{X})\s*(?:这个)?{页}的?(?:内容)?\s*(?:有了?|发生了?|被|一)?(?:任何)?(?:变化|改变|更新|修改|改动|变动|变|改)了?(?:的?时候?|以?后|的话|就|时)*[，,\s]*(?:请|就|要|马上|立即)*(?:(?P<tell>告诉|通知|提醒|叫)我(?:一声|一下)?)?(?P<do>.*)$
			^(?:监视|监控|监测|监听|关注|盯[着住]?|留意|看着|观察)(?:一下)?\s*{页}\s*(?P<x>{X})\s*(?:的?(?:变化|更新|改动|修改))?(?:[，,].*)?$`},
		{intent: "remind", needs: "cron", freeText: true, checks: true,
			example: localized{"remind me in 20 minutes to call Ann", "20分钟后提醒我给小安打电话"}, plan: remind, patterns: `
			\b(?:remind|wake|alert|notify|ping|nudge|text|message|warn|tell)\s+me\b|\blet\s+me\s+know\b|\b(?:reminder|alarm|timer)\b
			^(?:every|each|in|at|on|after|by|next|tomorrow|tonight|today|daily|hourly|weekly|monthly|{w}*day)\b|^\d
			提醒|闹钟|闹铃|定时|计时|(?:通知|告诉|叫|喊|催)(?:一下|一声)?(?:我|咱)
			^(?:每|再?过|[\d零一二两三四五六七八九十半下这本周星今明后早晚上中下凌傍工])`},
		{intent: "spawn each", needs: "sessions_spawn", freeText: true,
			example: localized{"look through docs and src at the same time for TODO", "同时在 docs 和 src 里搜索 TODO"},
			plan:    spawnEach, patterns: `
			^{seek}\s+(?:through |inside |in )?(?P<dirs>[^?]+?),?\s+(?:at the same time|in parallel|at once),?\s+(?:(?:and )?(?:tell|show) me )?(?:for
			|where)\s+{the}(?P<q>{X}|[\w\-]+)(?:\s.*)?$
			^(?:同时|并行)地?(?:在)?(?P<dirs>.+?)(?:里面?|中|下)?(?:同时|并行)?{搜}(?P<q>.+)$`},
		{intent: "spawn", needs: "sessions_spawn", freeText: true,
			example: localized{"start a subagent to list the files here", "启动一个子代理去列出当前目录"}, plan: spawn, patterns: `
			\b(?:sub-?\s?agents?|(?:another|an|new|helper|background) (?:agent|task|job))\b[\s,:]*(?:(?:to|for|that|which
			|and have it)\s+)?(?P<task>.*?)(?:\s+(?:while|as) we\b.*)?$
			^(?:run )?(?:this |it )?in the background[,:]?\s*(?P<task>.+)$|^delegate:?\s+(?P<task2>.+)$
			(?:启动|开|派|安排|让|叫|用|找|新建|创建|起).{0,12}(?:子任务|后台任务|代理|智能体)(?:去|来|帮我|在后台|[，,：:\s])*(?P<task>.*?)(?:[，,]\s*我们.*)?$
			^在?后台(?P<task>.+)$`},
		{intent: "why", needs: "memory_search memory_get", freeText: true, plan: why,
			example: localized{"how do you know that?", "你怎么知道的？"}, patterns: `
			^(?:how|where|from where)(?: from)? (?:do|did|would) you (?:know|learn|get)\b(?:\s+(?:that|this|it|about|of|from))*\s*(?P<q>.*?)(?:\s+from)?$
			^(?:why|what makes you)(?: do you| did you| would you)? (?:think|say|know|believe|remember)\b(?:\s+(?:that|so|this|it))*\s*(?P<q>.*)$
			^where (?:does|did|is) (?:that|this|it) (?:come )?from$|^what(?:'?s| is) (?:your|the) source$|^(?:why|source)$
			^你?(?:是)?(?:怎么|从哪[里儿]?|为什么|为何)(?:会|能)?(?:知道|晓得|这么说|得知|记得)的?(?P<q>.*?)的?$|^(?:出处|来源|依据)(?:是(?:什么|哪里))?$|^为什么$`},
		{intent: "forget", needs: "memory_search memory_get read edit", freeText: true, plan: forget,
			example: localized{"forget that my car is blue", "忘掉我的车是蓝色的"}, patterns: `
			^forget\b(?:\s+(?:that|about|everything|all|what|you know|i (?:said|told you)|the (?:fact|note|thing)s?|it|this)\b)*\s*(?P<q>.*)$
			^(?:delete|remove|erase)\s+(?P<q>.+?)\s+from (?:your |my |the )?(?:memory|memories|notes)$
			^忘[掉了记]?(?:关于|有关)?(?P<q>.*?)(?:的?事情?)?$|^(?:不用|不要)再?记(?:住|着|得)?(?:关于|有关)?(?P<q2>.+)$
			^[把将]\s*(?P<q>.+?)\s*(?:忘掉|忘了|忘记)$|从?(?:你的|我的)?(?:记忆|记录|笔记)[里中](?:删除|删掉|去掉|移除)(?P<q2>.+)$|^[把将]\s*(?P<q3>.+?)\s*从(?:你的|我的)?(?:记忆|记录|笔记)[里中]?(?:删除|删掉|去掉|移除)$`},
		{intent: "where", wholeMessage: true, plan: where, patterns: `
			^(?:what|which)(?:'?s| is| are)? (?:the |my |your |our |this )*(?:path |name )?(?:of )?(?:the |my |your |our |this )*(?:current |working |present )*(?:folder|directory|workspace)(?:'s)?(?: called| named| name| path)?$
			^(?:what|which) (?:folder|directory|workspace) (?:is (?:this|it|the current one)|(?:am i|are you|are we) (?:working )?in|do you (?:use|work in))$|^where (?:are (?:you|we) working|(?:is|are) (?:the|my|your) (?:workspace|files?))$
			^(?:现在|你|我|我们|的|当前|工作)*(?:目录|文件夹|工作区)的?(?:路径|名字|名称|位置)?(?:是|叫做?|在)?(?:什么|哪里|哪儿|哪个|啥)?(?:名字|名称|目录|文件夹|地方|路径)?$|^(?:现在|你|我|我们|当前)*在(?:哪个|什么)(?:目录|文件夹|工作区)(?:里|工作)*$`},
		{intent: "recall", needs: "read grep", freeText: true,
			example: localized{"what do you remember about my car?", "你还记得我的车吗？"}, plan: recall, patterns: `
			\bwhat\b.*\b(?:do you|you|did i|have i|i(?:'ve)?) (?:know|remember|recall|told|tell|say|said|noted?)\b(?: you| me)?(?:\s*(?:about|of|on
			|regarding))?\s*(?P<q>.*)$
			^(?:do|can|did) you (?:still )?(?:remember|recall|know)\s+(?:anything |what |when |where |who |that |about |if )*(?P<q>.+)$
			^recall\b(?:\s*(?:what|everything|anything|about))*\s*(?P<q>.*)$|^(?:show|list|read|open)(?: me)? (?:your|my|the) (?:memory|memories
			|saved notes)$
			^(?:what|when|where|who|which)(?:'?s| is| are| was| were| do| did)?\s+(?P<q>(?:my|our|\w+ (?:is|are|was) (?:my|our)|am i)\b.*)$|^(?:where
			|when|what) (?:do|did) i (?P<q2>\w+)$
			^(?:what|which) (?:day|date|month|year)(?: of the \w+)? (?:is|was|are|were|does|did|do|will) (?P<q>.+)$
			^(?:when|where|who|what)(?: is| are| was| were|'?s) (?P<q>[^?]*\w's \w.*)$
			(?:还|是否|能|记不)记得(?P<q>.+)$|^(?:你|都|还)*(?:记住|记得|知道|记)了?(?P<q>.*?)(?:什么|哪些|啥|多少|吗).*$|^(?:回忆|回想)(?:一下)?(?P<q2>.*)$
			我?(?:之前|以前|上次|曾经|刚才)(?:[跟和对]你)?(?:说过|说的|提过|告诉过?你?|让你记[住下])的?(?P<q>.*)$|(?:你的|我的|长期)记忆
			^我(?P<q>的?.+?)(?:是|叫|在|有)?(?:什么|哪[天里儿一]|多少|谁|啥|几号).*$`},
		{intent: "remember", needs: "read edit write", freeText: true,
			example: localized{"remember that my car is blue", "记住我的车是蓝色的"}, plan: remember, patterns: `
			^(?:remember|memori[sz]e|keep in mind|bear in mind|(?:do not|don'?t) forget|make a note|take (?:a )?note|note(?: down)?
			|jot down)\b{fact}(?P<t>.*)$
			^(?:for (?:future|later|your) (?:reference|information)|for the record|fyi)\b{fact}(?P<t>.+)$
			^(?P<t>{w}+?)[,.;]?\s*(?:remember|note|keep|memori[sz]e) (?:that|this|it)(?: in mind)?$
			^(?:[你要]|一定|务必)*(?:记住|牢记|记着|记得|(?:别|不要)忘(?:记|了)*|备忘|记个?笔记|记一?下来?|记)[:：,，\s]*(?P<t>.*)$
			^[把将]\s*(?P<t>.+?)\s*(?:记住|记下来?)$|^(?P<t2>.+?)[，,]\s*(?:记住|记一下|别忘了)$`},
		{intent: "run", needs: "exec", example: localized{"run `git status`", "执行 `git status`"}, plan: run,
			words: `\b(?:run|execute|terminal|shell|result|output|prints?)\b|执行|运行|跑|终端|命令行|输出`,
			patterns: `
			^\$\s*(?P<c>.+)$|^(?P<c2>{prog}.*)$|^(?:do|try|give me)\s+(?:an? )?(?P<c3>{prog}.*|{Q})$
			^(?:run|execute|exec|launch|invoke)\b\s*(?:the |a |this )?(?:following )?(?:(?:shell |terminal )?(?:command|script
			|program)\b)?\s*[:：]?\s*(?P<c>.*?)(?:\s+in (?:the |a )?(?:terminal|shell))?$
			^(?:在?(?:终端|命令行)[里中上]?)?(?:执行|运行|跑)(?:[一下个遍]|命令|指令|脚本|程序)*[:：\s]*(?P<c>.*)$`},
		{intent: "move", plan: cannotMove, patterns: `
			^(?:copy|duplicate|clone|back ?up|move|rename|relocate|mv|cp|delete|remove|erase|trash)\s.*{P}|^(?:change|set) the (?:file ?)?name of\b.*{P}
			{P}\s*(?:这个)?(?:文件|目录|文件夹)?\s*(?:给我|都|再)?(?:复制|拷贝|备份|移动|移到|移至|移入|挪|重命名|改名|更名|另存|删除|删掉|删了|移除)|(?:复制|拷贝|备份|移动|重命名|改名|删除|删掉|移除)(?:一下|文件|目录|文件夹|\s)*{P}`},
		{intent: "edit", needs: "edit",
			example: localized{"replace \"old\" with \"new\" in notes.txt", "把 notes.txt 里的“旧”改成“新”"}, plan: edit,
			words: `\b(?:replace|change|fix|correct|typo|mistake|error|spelling|wrong|should|must|value)\b|错别?字|错误|改|修正|更正|替换|应该?`,
			patterns: `
			{change}(?P<o>.+?){to}(?P<n>.+?)\s+(?:in|inside|of)\s+{file}(?P<p>{P})|(?P<p2>{P})\W+(?:.*\W)?{change}(?P<o2>.+?){to}(?P<n2>.+)$
			|^{change}(?P<o3>{Q}){to}(?P<n3>{Q})$
			(?P<p>{P}).*?(?P<o>{Q}|\w+) (?:should|must) (?:be|read|say) (?P<n>{Q}|\w+)|(?P<o2>{Q}|\w+) (?:should|must) (?:be|read) (?P<n2>{Q}
			|\w+)\W.*(?P<p2>{P})
			(?P<p>{P}){in}(?P<o>.+?){改}(?P<n>.+)$|(?P<p2>{P}).*?(?P<o2>{Q}|\w+)\s*应[该当]?[是为]\s*(?P<n2>{Q}|\w+)
			用\s*(?P<n>.+?)\s*替换\s*(?P<p>{P}){in}(?P<o>.+)$|^[把将](?P<o2>{Q}|\w+){改}(?P<n2>{Q}|\w+)$`},
		{intent: "write", needs: "write", freeTextUnquoted: true, repeats: true,
			example: localized{"create hello.txt with \"hi\"", "新建 hello.txt，内容是“你好”"}, plan: write,
			words: `\b(?:create|make|write|save|store|new|empty)\b|新建|创建|建|写|存|保存|新的?`,
			patterns: `
			^(?:create|make|write|generate|new|save|start|produce)\s+(?:me )?{file}(?P<p>{P})(?: file)?{is}(?P<t>.*)$
			^(?:write|save|store|output|dump|record)\s+(?:to|into|in)\s+{file}(?P<p>{P})[\s:,]*(?P<t>.+)$
			^(?:write|save|store|output|dump|record)\s+{is}(?P<t>.+?)\s+(?:to|into|in|as)\s+{file}(?P<p>{P})(?:\s*[:：]\s*(?P<t2>.+))?$
			^put\s+{is}(?P<t>.+?)\s+(?:to|into|in)\s+(?:an? )?new {file}(?P<p>{P})$
			[把将]\s*(?P<t>.+?)\s*(?:写|保存|另?存|记录?|放|输出)[入到进在为成至]+{个}(?P<p>{P})(?:\s*里)?(?:\s*[:：]\s*(?P<t2>.+))?$
			[在往向]\s*(?:文件)?\s*(?P<p>{P}){in}(?:写[入上下进]?|填入|输入|保存|记录)(?:内容|一行|一句)?[:：\s]*(?P<t>.+)$
			^(?:写入?|保存)\s*(?P<t>.+?)\s*[到至进]\s*(?:文件)?\s*(?P<p>{P})$
			(?:[创新]建|建立?|生成|写|做|弄|新增){个}(?P<p>{P})\s*的?(?:文件|文档|笔记|脚本)?{是}(?P<t>.*)$`},
		{intent: "append", needs: "read edit write", freeTextUnquoted: true, repeats: true,
			example: localized{"append \"eggs\" to list.txt", "在 list.txt 末尾追加“鸡蛋”"}, plan: appendTo,
			words: `\b(?:append|add|insert|end|bottom|very|new|one more|more|another|line|item|entry)\b|末尾|结尾|最后|后面|追加|添?加|一[行条句项]|新的?`,
			patterns: `
			^(?:append|add|insert|put|tack)\s+(?:on )?(?:(?:an?|another|one more|new|line|entry|item|row)\s+)*{is}(?P<t>.+?)\s+(?:to|onto|into|in|at
			|on)\s+(?:(?:very|end|bottom|of|the|my|file) )*(?P<p>{P})$
			^(?:append|add|insert|put)\b.*?\b(?:to|into|in)\s+(?:(?:the|end|bottom|of|file) )*(?P<p>{P})\s*(?:[:,]|with|saying|the (?:line
			|text))+\s*(?P<t>.+)$
			(?:one more|another|an extra|a new)\s+(?:line|entry|item|row)\s+(?:for|in|to|into|of)\s+(?P<p>{P})\s*[:,]\s*(?P<t>.+)$
			^write\s+(?P<t>.+?)\s+(?:at|to|on) the (?:end|bottom) of {file}(?P<p>{P})$
			(?P<p>{P}){in}(?:[末结]尾|最后|后面|底部)?[再又]?(?:追加|添加?|补充?|附加|增加|插入|加)[上入]?[一两]?[行条句项个笔]?(?:内容)?[:：,，\s]*(?P<t>.+)$
			(?P<p>{P}).*(?:[末结]尾|最后|底部)[再又]?写[上入下]?(?:一[行条句])?[:：,，\s]*(?P<t>.+)$
			(?:[把将]|^追加|^添加?|^加)\s*(?P<t>.+?)\s*(?:追加|添加?|加|附加|补)?[到进入在]+\s*(?:文件)?(?P<p>{P})`},
		{intent: "draw", needs: "image_generate", freeText: true, example: localized{"draw a lighthouse", "画一座灯塔"},
			plan: draw, patterns: `
			^(?:draw|paint|sketch)\s+(?:me\s+|us\s+)?(?:(?:a|the) (?:picture|image|drawing) (?:of|showing|with)\s+)?(?P<q>[^\x{E000}-\x{E3FF}]+)$
			^(?:make|create|generate|give)\s+(?:me\s+|us\s+)?(?:a |an |the )?(?:picture|image|drawing|painting|sketch) (?:of|showing|with)\s+(?P<q>[^\x{E000}-\x{E3FF}]+)$
			^(?:请|帮我|给我|为我|来)*(?:画|绘制)(?:一?[张幅])?(?P<q>[^\x{E000}-\x{E3FF}]+)$|^(?:请|帮我|给我)*(?:生成|创建|做)(?:一?[张幅个])(?P<q2>[^\x{E000}-\x{E3FF}]+?)的(?:图片|图像|图|画)$`},
		{intent: "browse", needs: "browser",
			example: localized{"open https://example.com in the browser", "用浏览器打开 https://example.com"}, plan: browse,
			words: `\b(?:open|browser|visit|go|load|page|website|site|new|tab)\b|浏览器?|打开|访问|网页|页面|显示`,
			patterns: `
			{U}.*\bbrowser\b|\bbrowser\b.*{U}
			{U}.*浏览器|浏览器.*{U}`},
		{intent: "fetch", needs: "web_fetch", example: localized{"fetch https://example.com", "抓取 https://example.com"},
			plan:  fetch,
			words: `\b(?:fetch|download|get|load|retrieve|grab)\b|抓取?|下载|获取|访问|浏览`,
			patterns: `
			{U}`},
		{intent: "find", needs: "find", example: localized{"find all .go files", "找出所有 .go 文件"}, plan: find,
			words: `\b(?:search|locate|lost|missing|went|gone|disappeared|looking|can(?:'t|not) find|is there|my)\b|搜索?|寻|丢|不见|找不到|带|包含|含有|所有`,
			patterns: `
			\b(?:files?|documents?)\s+(?:that (?:is|are) |(?:whose|with (?:the |a )?) ?)?(?:names?|called|named|matching|like|ending (?:in|with)
			|extension)\s+(?:is |has |contains )?(?P<q>{name}|\S+)(?:\s+(?:in|inside|under)\s+(?P<p>{name}))?
			\b(?:with|has|have|contain(?:s|ing)?|says?)\s+(?:the word )?(?P<q>{X}|\S+)\s+in (?:the|its|their) (?:file ?)?names?\b
			^(?:find|locate|where(?:'s|s| is| are| can i find| did i \w+)|search for|look for|which (?:folder|directory) \w+|is there|are there
			|do (?:i|we|you) have)\s+(?:(?:me|the|an?|my|all|any|files?|called|named)\s+)*(?P<q>{P})(?:\s+files?)?(?:\s+(?:in|inside
			|under)\s+(?P<p>.+?)|\s+\w+)?$
			\b(?:lost|missing|can(?:'t|not) find|looking for)\b.*?(?P<q>{P})|(?P<q2>{P}).*\b(?:where|lost|missing|disappeared)\b
			^(?:find|locate|search for|look for|list|show|get|where are|are there|which|what|any|do (?:i|we) have)\s+(?:(?:me|all|any|every|the|my
			|of)\s+)*(?P<ext>{P}|[a-z+#]+)[\s\-]+(?:source |code )?(?:files?|scripts?|documents?)\b.*?(?:\s(?:in|inside|under|within)\s+(?P<p>.+))?$
			(?P<q>{P})\s*(?:这个|那个|的)?(?:文件)?(?:到底)?(?:是|放|存|保存|位于|跑)*(?:在哪|到?哪[里儿去]|在什么地方)|(?P<q2>{P}).*(?:找不到|不见|丢)|(?:找不到|丢).*?(?P<q3>{P})
			(?:名字?|名称)(?:里面?|中|是)?(?:包含|含有|带有?|有|叫|为|是)?\s*(?P<q>{X}|[^\s的]+?)\s*的?(?:所有)?(?:文件)?$|(?:叫做?|名[为叫])\s*(?P<q2>{X}|[^\s的]+)\s*的?文件
			(?:[找搜列]|所有|全部|哪些|有什么|有没有)[出到]?(?:所有|全部)?的?\s*(?P<ext>{P}|[A-Za-z+#]+|图片|照片|文本|脚本)\s*(?:格式|类型|后缀|结尾)?的?\s*(?:文件|脚本|文档|代码)
			^(?:在\s*(?P<p>{name}){in})?(?:查找|寻找|找|搜索|搜)(?:一下|到|下)?\s*(?:文件)?\s*(?P<q>{P})\s*(?:这个)?(?:文件)?$`},
		{intent: "search", needs: "grep", example: localized{"search for TODO in src", "在 src 里搜索 TODO"}, plan: search,
			words: `\b(?:search|grep|look|through|use|mention|contain|occur|appear|for)(?:s|ed|ing)?\b|搜索?|检索|查|寻|提到|用到|包含|出现|定义|调用`,
			patterns: `
			^{seek}\s+(?:through |inside |in |within |into )?(?P<p>{P}|[\w./\-]+|the \w+(?: folder| directory)?)\s+for\s+{the}(?P<q>.+)$|^(?:in
			|inside|under)\s+(?P<p2>{name}),?\s+{seek}\s+{the}(?P<q2>.+)$
			^{seek}\s+(?:me )?(?:for |up )?{the}(?P<q>.+?)\s+(?:in|inside|within|under|across|throughout|through|from|among)\s+(?P<p>.+)$
			^(?:search|grep|scan|rg|look for|hunt for)\s+(?:for )?{the}(?P<q>.+)$|^find\s+{the}(?P<q2>{Q}|[A-Z_]{3,}|\w*[a-z][A-Z]\w*)$
			\b(?:files?|documents?|code|lines?|places?|notes?)\b.*?\b(?:contain(?:s|ing)?|mention(?:s|ing)?|uses?|using|has|have|includes?|including
			|referenc(?:es?|ing)|with|says?)\s+{the}(?P<q>.+?)(?:\s+in\s+(?P<p>{name}))?$
			\bwhere\b.*?\b(?:we|i|they|you) (?:use|mention|define|call|reference|declare|say)\s+{the}(?P<q>\S+|{X})(?:\s+in\s+(?P<p>.+))?$
			\bwhere\b.*?\b(?:is|are|does|do|gets?)\s+{the}(?P<q>\S+|{X})\s+(?:used|mentioned|defined|called|referenced|declared|appear
			|occur)(?:\s+in\s+(?P<p>.+))?$
			^(?:is|are|does|do)\s+(?:there )?{the}(?P<q>{w}+?|{X})s? (?:(?:appear|occur|exist|mentioned|anywhere|used|listed) )*(?:in
			|inside)\s+(?P<p>{P}|the \w+)$|(?P<p2>{P})\s+(?:contains?|mentions?|has|includes?)\s+{the}(?P<q2>.+)$
			(?:哪些|哪个|什么|哪几个|哪里|哪儿|有没有)(?:文件|地方|代码|笔记)?{in}(?:都|有)?(?:包含|含有|提到|提及|出现|写|用到|使用|定义|调用|有)[过了]*\s*(?P<q>.+)$
			[在从到]?\s*(?P<p>{X}|[\w./\-]+|(?:当前|这个|整个|所有|全部)?的?(?:目录|文件夹|项目|工作区|文件|代码|仓库)){in}(?:{搜}|有没有|是否有)(?:提到|出现)?\s*(?P<q>.+)$
			^(?:在)?{搜}(?P<p>{P}|[\w./\-]+)\s*(?:目录|文件夹|文件)?(?:里面?|中|下)(?:有没有|的|包含|提到|出现|所有)*\s*(?P<q>.+)$
			^(?:全局)?{搜}(?P<q>.+)$|^(?P<q2>{X}|\w+)\s*(?:都)?(?:在|被)?(?:哪里|哪些文件|哪些地方|什么地方)[里中]?(?:用到|使用|提到|定义|出现|调用)|^(?:搜索|查找)$`},
		{intent: "time", needs: "session_status", checks: true, example: localized{"what time is it?", "现在几点了？"},
			plan: clock, patterns: `
			what(?:'?s| is)?(?: the)?(?: current| local)? (?:time|date|day)\b|\btoday'?s (?:date|day)|\b(?:which|what) day\b|^(?:tell me )?(?:the )?(?:current |exact )?(?:time|date
			|clock)$|do you have the time|what is today
			几点|现在的?(?:是)?(?:什么)?时间|今天(?:是|的)*(?:几[号月]|星期几|周几|日期|哪天|多少号|什么日子)|当前的?(?:时间|日期)|星期几|周几|^(?:时间|日期)$|什么时候了
			^[^的\x{E000}-\x{E3FF}]{1,12}(?:是|的)*(?:几[号月]|日期|哪一?天|多少号|什么日子)`},
		{intent: "status", needs: "session_status", example: localized{"status", "状态"}, plan: status,
			words: `\b(?:tokens?|model|you|using|used?|running|on|so far|since|much|many|how|session|language)\b|目前|为止|多少|一共|总共|用|花|语言|大|会话`,
			patterns: `
			^(?:/?status|usage|tokens?|costs?|context|model)$|(?:which|what)(?:'s| is)?(?: the| your| current| language)* (?:model|llm)\b
			|\bmodel (?:are you|is)|\b(?:session|your|current|system)\b.*\bstatus\b
			how many tokens|\btokens?\b.*\b(?:used?|left|so far|spent)\b|context (?:window|size|usage|left)|how much (?:context|did (?:this|it)
			|have (?:i|we)|does this) 
			^(?:会话|当前|系统|你的)?的?状态|(?:什么|哪个|啥)(?:语言|大)?模型|[用花]了?(?:多少|几个)|用量|token.*(?:多少|用)|上下文.*(?:多少|大小|剩)|费用`},
		{intent: "list", needs: "ls", example: localized{"list the files in src", "把当前目录列出来"}, plan: list,
			words: `\b(?:many|how|tree|explore|stuff|everything|both)\b|多少|几个|浏览|项目|工作区|当前|上级|这里|这儿|显示`,
			patterns: `
			^(?:ls|dir|ll|tree)(?:\s+-\w+)*(?:\s+(?P<p>{name}))?$|^list(?:\s+(?P<p2>{name}))?$|^files$
			\b(?:in|inside|of|under|within|at)\s+(?:the |this |my )?(?P<p>{name})(?:'s)? (?:folder|directory|dir)\b|\b(?:the|this
			|my)\s+(?P<p2>{name})\s+(?:folder|directory|dir)\b|\b(?:folder|directory) (?P<p3>{X})
			^(?:list|show|see|display|what|whats|which|get|give|explore|browse|check|view|are there|how many|print)\b.*\b(?:files|folders|folder
			|directory|everything|documents|contents|stuff)\b(?:.*?\b(?:in|inside|of|under|within)\s+(?P<p>.+))?
			^what(?:'?s| is| do (?:i|we|you) have| have (?:i|we) got| are)?(?: all)?\s+(?:in|inside|under|within)\s+(?P<p>.+)$|^what(?:'?s| is
			| do (?:i|we|you) have)?\s+(?:in )?(?:here|there)
			(?P<p>{X}|[\w./\-]+|上级|上一级)\s*(?:这个|的)?(?:目录|文件夹)|(?:目录|文件夹)\s*(?P<p2>{X}|[\w./\-]+)|目录|文件夹|工作区
			(?P<p>{P})\s*(?:里面?|下面?|中|底下)(?:都|还)?(?:有|是|放了?)(?:些|点)?(?:什么|哪些|啥|多少)|(?:列出|列一下|浏览)(?:所有|全部)?\s*(?P<p2>{P})
			(?:有|是)(?:些|点)?(?:哪些|什么|啥|多少)(?:个)?(?:文件|东西)|(?:列出|列一下|显示|看看)(?:一下|所有|全部|这里|这儿|当前|的)*文件$|文件列表|列出来|^列出?$|(?:这里|这儿)(?:都|还)?有(?:什么|啥|哪些)`},
		{intent: "read", needs: "read", example: localized{"show notes.txt", "看看 notes.txt 里写了什么"}, plan: read,
			words: `\b(?:written|inside|again|back|whole|entire|full|first|out|loud)\b|整个|完整|全文|说|取`,
			patterns: `
			\b(?:show|read|open|cat|view|display|print|see|look|pull|give|check|contents?|what|what'?s|inside|says?)\b.*{P}|^(?:(?:and|the|file
			|,)?\s*{P}\s*)+$
			^(?:the )?(?:first|top|last|bottom|final)\s+(?:\w+\s+)?lines?\s+(?:of|in|from)\b.*{P}|^lines?\s+\d.*{P}
			^(?:show|read|open|display|print|cat|view|see|check)(?: me)?(?: (?:it|that|this|(?:the|that|this|a|my|some) (?:file|note|document)
			|its contents?|the contents?(?: of it)?))?(?: again| back| to me)?$
			(?:看|读|打开|显示|展示|念|瞧|瞅|给我|输出|查).*{P}|{P}.*(?:内容|看|读|打开|显示|给我|念|瞧|瞅|什么|啥|哪些)
			^(?:把它?)?(?:看|读|打开|显示|展示)(?:看|读|一下)?(?:它|(?:这个|那个)?文件|内容)?(?:的?内容|给我看?)?$`},
		{intent: "ask notes", needs: "memory_search memory_get", checks: true, guesses: true, plan: askNotes, patterns: `
			^(?:what|when|where|who|whom|whose|which|why|how|is|are|was|were|do|does|did|has|have|should)\b.*$|\?\s*$
			什么|哪|谁|几|多少|怎么|吗|是否|有没有|何时`},
	}
	for i := range rows {
		rows[i].compile()
	}
	return rows
}
