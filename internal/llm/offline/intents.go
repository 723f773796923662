package offline

// table is what the assistant understands, in the order in which it is tried.
func table() []row {
	return append(append(append(talkRows(), systemRows()...), changeRows()...), lookRows()...)
}

// say returns a row's make that answers without any call.
func says(w words) func(*turn, match) *step {
	return func(t *turn, _ match) *step { return &step{answer: t.say(w)} }
}

// talkRows are conversation.
func talkRows() []row {
	return []row{
		{intent: "help", talk: true, patterns: []string{
			`^(?:/?help(?: me)?|\?+|commands|menu|capabilities|examples?)$`,
			`what (?:all |else )?(?:can|could|do|are) (?:you|u) (?:do\b|able|help|capable|offer|support|know how|understand)`,
			`what (?:are you|you are|you're) (?:able|capable)|how (?:do|can|should) i (?:use|talk to|work with) (?:you|this)|what can i (?:ask|say|do|type)|what (?:commands|requests|sort|kinds?|things)\b.*\b(?:understand|know|support|handle|do|take)`,
			`(?:list|show|tell)(?: me)? (?:your |the |all |available )*(?:commands|capabilities|features|abilities|skills|functions)`,
			`what are your (?:capabilities|features|abilities|skills|commands)|how can you help`,
			`^(?:使?用?帮助(?:一下)?|使用(?:说明|方法)|说明|怎么用你?|功能(?:列表)?|菜单|命令列表)$|(?:能|会|可以)(?:帮我|为我)?(?:做|干)(?:些|点|一些)?(?:什么|啥|哪些)|^(?:做|干)(?:些|点)?(?:什么|啥)|(?:有|支持)(?:些)?(?:什么|哪些|啥)(?:功能|本事|能力|命令|技能)|(?:怎么|如何)(?:用|使用|操作)你|你能帮我?(?:什么|啥)`,
		}, make: func(t *turn, _ match) *step { return &step{intent: "help", answer: "help"} }},
		{intent: "model", example: words{"which model are you using?", "你用的是什么模型？"}, patterns: []string{
			`(?:which|what)(?:'s| is)?(?: the| your)?(?: current| ai| llm| language)* (?:model|llm|provider)\b|\bmodel (?:are you|is (?:this|used|active|configured))|^model$`,
			`(?:什么|哪个|啥|哪种)(?:语言|大)?模型|(?:当前|现在)的?模型|模型是`,
		}, make: status},
		{intent: "who", talk: true, patterns: []string{
			`^who am i (?:talking|speaking|chatting) (?:to|with)`, `开发者|谁(?:开发|做|写|创造|制作)的?你?`, `^(?:who|what)(?: exactly| the hell)? are (?:you|u)\b|are you (?:an? |really )*(?:ai|a\.i\.|bot|robot|human|person|real|llm|language model|chatgpt|gpt|claude|machine|alive|online|offline)|(?:what(?:'s| is)|tell me) your name|introduce yourself|about yourself`,
			`你(?:到底|究竟)?是(?:谁|什么|啥|哪个|哪位|不是|真人|人|机器)|你叫(?:什么|啥)|你的名字|(?:介绍|说说)(?:一下)?(?:你)?自己`,
		}, make: says(whoText)},
		{intent: "greet", talk: true, patterns: []string{
			`^(?:hi+|hello+|hey+|hiya|yo|howdy|greetings|good (?:morning|afternoon|evening|day)|morning|evening|sup|what'?s up)(?:\s+(?:there|chela|again|everyone|friend|all|you|assistant|buddy))*[\s!.,?~]*(?:(?:how|hope) (?:are|r|is|you)[^\x{E000}-\x{E0FF}]*)?$|^how (?:are|r) (?:you|u)\b|^how(?:'s| is) (?:it going|everything|life)|^(?:nice|good) to (?:meet|see) you`,
			`^(?:你好[啊呀]?|您好|嗨|哈[喽啰罗]|喂|早上好|早安?|上午好|中午好|下午好|晚上好|在吗|在不在|在么|有人吗|大家好|你好吗|最近怎么样|近来可好)[\s，,!！。.~？?呀啊]*(?:chela|助手|朋友|你好吗|在吗|最近怎么样|吗)*[\s!！。.~？?]*$`,
		}, make: says(greetText)},
		{intent: "thanks", talk: true, patterns: []string{
			`^(?:(?:ok|okay|great|perfect|cool|nice)[\s,.!]+)?(?:many thanks|thanks|thank (?:you|u)|thx|ty|cheers|much appreciated|(?:i )?appreciate it|great|perfect|awesome|nice|cool|well done|good (?:job|work|bot)|excellent|wonderful|amazing|brilliant)(?:\s+(?:you|so|very|a|much|lot|chela|for|your|the|help|helping|work|job|that|this|is|was|all|again|me|out|one|everything))*(?:,? that(?:'s| is) (?:all|it))?[\s!.,]*$`,
			`^(?:好的?[，,\s]*)?(?:非常|太|十分|真是)?(?:麻烦你?了?[，,\s]*)?(?:谢谢|谢啦|谢了|多谢|感谢|感激|辛苦了?|太好了|很好|真棒|真好|不错|厉害|干得好|做得好|太棒了)(?:你|您|啦|了|的|帮忙|帮助|大家)*[\s!！。.~，,]*$`,
		}, make: says(thanksText)},
		{intent: "bye", talk: true, patterns: []string{
			`^(?:bye(?:[ -]?bye)?|good ?bye|see (?:you|ya)(?: later| soon| tomorrow| around)?|good ?night|that(?:'s| is|s) all(?: for (?:now|today))?|i'?m done|farewell|later)[\s!.]*(?:chela)?$|^(?:再见|拜拜|回见|晚安|下次见|回头见|明天见|就这样|没事了)[\s!！。.~]*$`,
		}, make: says(byeText)},
		{intent: "yes", talk: true, patterns: []string{
			`^(?:yes|y|yeah|yep|yup|sure|ok|okay|alright|fine|do it|go ahead|correct|right|please do|of course|absolutely|好|好的|好啊|是|是的|对|对的|可以|行|嗯+|确定|没问题|当然)[\s!.,。！]*$`,
		}, make: yes},
		{intent: "no", talk: true, patterns: []string{
			`^(?:no|n|nope|nah|no thanks?(?: you)?|never ?mind|cancel(?: (?:it|that))?|stop|forget (?:it|about it)|don't(?: do it)?|不|不用了?|不要了?|不了|算了|取消|没事|不必了?|别(?:做)?了|不是)[\s!.,。！]*$`,
		}, make: says(noText)},
	}
}

// yes answers an offer: only "more" is ever offered.
func yes(t *turn, _ match) *step {
	if n := len(t.past); n > 0 {
		if s := t.more(); s.answer == "" {
			return s
		}
	}
	return &step{answer: t.say(noYesText)}
}

// systemRows are about time, the session and the machine.
func systemRows() []row {
	return []row{
		{intent: "remind", greedy: true, example: words{"remind me in 20 minutes to call Ann", "20分钟后提醒我给小安打电话"}, patterns: []string{
			`\b(?:remind|reminder|alarm|timer|wake me|alert me|notify me|ping me (?:in|at|when)|schedule)\b(?P<rest>.*)$`,
			`(?P<rest>.*(?:提醒|叫我|闹钟|定时|闹铃|通知我).*)$`,
		}, make: remind},
		{intent: "spawn", greedy: true, example: words{"start a subagent to check the links", "启动一个子代理去检查链接"}, patterns: []string{
			`^(?:start|spawn|launch|create|use|run|begin|kick off|fire up|open|delegate(?: this)? to|send|get)\s+(?:up )?(?:an? |another |two |some |the )?(?:new )?(?:sub[- ]?agents?|helper agents?|child agents?|background (?:agents?|tasks?|jobs?|runs?)|agent)\b\s*(?:,|:|to|for|that|which|and (?:have|let|ask) it|who|with the task(?: of| to)?)*\s*(?P<task>.*)$`,
			`^run (?:this |it )?in the background:?\s*(?P<task>.+)$`, `^(?:let|have|ask|tell|get)\s+(?:an? |the )?sub-?agents?\s+(?:to )?(?P<task>.+)$`, `^(?:delegate|in the background,?)\s*:?\s*(?P<task>.+?)(?: to an? sub-?agent)?$`, `^(?P<task>.+?) in the background$`, `^have an? (?:sub-?)?agent\s+(?P<task>.+)$`,
			`(?:启动|开启|开|派|派出|安排|指派|找|创建|起|用|让|新建|叫)(?:一个|个|一名)?(?:新的?)?(?:子代理|子智能体|子agent|子任务|后台任务|代理|智能体|小助手)(?:去|来|帮我|，|,|:|：|处理|执行|在后台)*\s*(?P<task>.*)$`, `^(?:在后台|后台)(?P<task>.+)$`,
		}, make: spawn},
		{intent: "recall", greedy: true, example: words{"what do you remember about my car?", "你还记得我的车吗？"}, patterns: []string{
			`(?:what|anything|everything|all)\b.*\b(?:do you|you|did i|have i|i(?:'ve| have)?) (?:know|remember|recall|told|tell|said?|say|noted?|save|ask(?:ed)? you to remember)\b(?: you| me)?(?: to remember)?(?:\s*(?:about|of|on|regarding|concerning))?\s*(?P<q>.*)$`,
			`^(?:do|can|did) you (?:still )?(?:remember|recall|know)\s+(?:anything about |what |when |where |who |that |about |if )?(?P<q>.+)$`, `^recall\s*(?:what|everything|anything)?(?: you know| i said| i told you)?(?: about)?\s*(?P<q>.*)$`,
			`^(?:show|list|read|open|see|display|print)(?: me)? (?:all )?(?:of )?(?:your|my|the) (?:memory|memories|long-?term memory|saved notes)$`, `^(?:what|when|where|who|which)(?:'s| is| are| was| were| do| did) (?:my|i|our)\b\s*(?P<q>(?:favou?rite|birthday|name|wife|husband|car|dog|cat|address|phone|email|password|plan|preference|boss|mother|father|meeting|doctor|flight|appointment|wifi|allerg|live|work|like|prefer|born).*)$`,
			`\bin (?:your |my )?memory\b(?:.*\babout (?P<q>.*))?$`, `^我叫什么(?P<q>名字)?$`, `^(?:what|which) (?P<q>\w+ (?:is|are|was|were) (?:my|our) .+)$`, `^what am i (?P<q>\w.+)$`, `^(?:when|who)(?:'s| is) my (?P<q>.+)$`, `(?:你)?(?:还|是否|能)?记不?记?得(?:我)?(?:关于|说过|告诉过你|的)*(?P<q>.*?)(?:吗|么|什么|哪些|多少|不)+(?:事情|内容|东西)?$`, `(?:你)?还记得(?P<q>.+)$`, `^(?:回忆|回想|想想)(?:一下)?(?:关于)?(?P<q>.*)$`, `我(?:之前|以前|上次|曾经|刚才)?(?:说过|告诉过你|让你记(?:住|下|过)?)(?:的|了)?(?P<q>.*)$`,
			`^我的?(?P<q>(?:生日|名字|爱好|最喜欢|喜欢|车|电话|地址|邮箱|密码|老婆|妻子|丈夫|老公|妈妈|爸爸|狗|猫|公司|工作|老板|医生|过敏|住).*?)(?:是|叫|在|有)?(?:什么|哪天|哪一天|哪里|哪儿|多少|谁|啥|几号|什么时候)+.*$`, `(?:查看|看看|显示|打开|列出)(?:一下)?(?:你的|我的)?(?:长期)?(?:记忆|备忘)(?:内容)?$`, `你(?:都)?(?:知道|记住|记)了?(?:关于)?(?:我的?)?(?P<q>.*?)(?:的)?(?:什么|哪些|啥|多少).*$`,
		}, make: recall},
		{intent: "remember", greedy: true, example: words{"remember that my car is blue", "记住我的车是蓝色的"}, patterns: []string{
			`^(?:remember|memori[sz]e|keep in mind|bear in mind|don'?t forget|do not forget|make a (?:mental )?note|take a note|take note|note(?: down)?|jot down|write down|save (?:this |that )?(?:to|in) (?:your )?memory|add (?:this |that )?to (?:your )?memory|store in memory)(?:\s+(?:this|the following|the fact|a fact|of|for later|down))*\s*[:,]?\s*(?:that\b)?\s*[:,]?\s*(?P<t>.*)$`,
			`^(?P<t>[^\x{E000}-\x{E0FF}]+?)[,.;]?\s*(?:please )?(?:remember|note|keep|memori[sz]e) (?:that|this|it)(?: in mind| for later)?$`, `^(?:save|store|put|keep|add)\s+(?:this|that|the following)\s+(?:in|to|into)\s+(?:your |my )?memory\s*[:,]?\s*(?P<t>.+)$`, `^(?:save|add|store|put|keep)\s+(?P<t>.+?)\s+(?:to|in|into)\s+(?:your |my |the |long-?term )*memory$`, `^(?:write|make|create|add|take|leave|save|jot)\s+(?:me |yourself )?(?:an? )?(?:quick |short |new )*(?:note|memo)\s*(?:to self|for me|for later)?\s*(?::|that|saying|to|about|,)\s*(?P<t>[^\x{E000}-\x{E0FF}]+)$`, `^(?:fyi|for your information|for the record)[,:]\s*(?P<t>.+)$`,
			`^(?:你?要|一定要|务必)?(?:记住|记一下|记一笔|记个事|记下来?|牢记|记着|记得|别忘了?|不要忘记?了?|请记|记个笔记|做个笔记|备忘)(?:一下)?(?:这个|这件事|以下)?[:：,，\s]*(?P<t>.*)$`, `^(?:把|将)\s*(?P<t>.+?)\s*(?:记住|记下来?|记到记忆(?:里|中)?|存(?:到|进|入)记忆(?:里|中)?)$`,
		}, make: remember},
		{intent: "disk", example: words{"how much disk space is left?", "磁盘还剩多少空间？"}, patterns: []string{
			`\b(?:dis[ck]|storage|hard ?drive|ssd|hdd|drive)\b.*\b(?:space|usage|free|full|used|left|size|available|remaining|capacity|status)\b|(?:space|room|storage|gb|gigabytes)\b.*\b(?:left|free|available|remaining|on (?:the |my |this )?(?:disk|drive|computer|machine))|\b(?:free|available|remaining|how much|check)\b.*\b(?:dis[ck]|storage|drive)\b|^(?:dis[ck](?: space| usage)?|df)$|is (?:the|my) (?:disk|drive) full`,
			`(?:磁盘|硬盘|存储|储存)(?:的)?(?:空间|容量|使用|用量|情况|占用|还|剩|够|有|满|状态)*|(?:剩余|可用|还有多少)(?:的)?空间|空间还(?:剩|有)`,
		}, make: command(words{"disk space", "磁盘空间"}, "df -h .")},
		{intent: "memory", example: words{"how much memory is free?", "还有多少可用内存？"}, patterns: []string{
			`\b(?:ram|memory|mem)\b.*\b(?:usage|free|left|used|available|use|using|have|there|status|info|consumption|total)\b|\b(?:how much|free|available|used|check|show|total)\b.*\b(?:ram|memory|mem)\b|^(?:ram|free|memory)$`, `内存`,
		}, make: command(words{"memory", "内存"}, freeCommand())},
		{intent: "machine", example: words{"what is this machine doing?", "查看系统负载"}, patterns: []string{
			`^(?:run )?(?P<uptime>uptime)$|\b(?P<uptime>uptime|cpu(?: load| usage)?|load average|system load)\b|how (?:busy|loaded) is|how long (?:has|is) (?:this|the) (?:machine|computer|system|server)|what is this machine doing|(?P<uptime>运行了?(?:多久|多长)|开机(?:多久|时间)|负载|cpu|处理器)`,
			`\b(?P<ps>(?:running |top )?process(?:es)?|what(?:'s| is) running)\b|(?P<ps>进程)`, `(?:which|what)(?:'s| is)?(?: the| my| this)?(?: kind of)? (?P<uname>os|operating system|kernel|linux|distro|system version|platform)\b|(?P<uname>操作系统|系统版本|内核|什么系统)|^(?P<uname>uname|system info(?:rmation)?|系统信息)`,
			`^(?P<who>whoami|who am i|what user)|(?P<who>(?:which|what) user|当前用户|我是谁)`, `^(?P<pwd>pwd)$|(?:what|which|where)(?:'s| is| am)?(?: the| my| our| i)?(?: in)? (?P<pwd>(?:current |present |working )+(?:directory|dir|folder|path))|^(?P<pwd>where am i|print working directory)|(?P<pwd>(?:当前|现在|工作)(?:的)?(?:路径|目录|文件夹)(?:是什么|是哪个|是哪里|在哪里?|路径)|(?:现在|我)在哪个?(?:目录|文件夹|里))`,
			`\b(?P<ip>ip(?: address)?(?:es)?|hostname|host name)\b|(?P<ip>主机名|ip ?地址)`,
		}, make: machine},
		{intent: "git", example: words{"show the last 5 commits", "看看最近的提交记录"}, patterns: []string{
			`^(?:run |execute |do |运行|执行)?\s*(?P<cmd>git (?:status|log|diff|branch|show|stash|remote|tag|blame|add|commit|checkout|switch|pull|push|fetch|clone|init|reset|rev-parse|describe|config)\b[^\p{Han}]*)$`,
			`(?P<log>\bgit\b.*\b(?:log|history)\b|\bcommit(?:s|ted)?\b.*\b(?:history|log|recent|recently|last|latest|made|list)\b|\b(?:recent|last|latest|previous|newest|list|show)\b.*\bcommits?\b|commit history|提交(?:的)?(?:记录|历史|日志)|最近(?:的|几次|\d+次|\d+个|\d+条)*提交|git\s*(?:的)?(?:日志|历史|记录|提交))`,
			`(?P<diff>\bgit\b.*\bdiff\b|\b(?:show|see|what|view)\b.*\bdiffs?\b|git.*差异|代码差异|(?:查看|看看)(?:具体)?(?:的)?(?:差异|diff))`, `(?P<branch>\b(?:which|what|current|list|show|all|git)\b.*\bbranch(?:es)?\b|(?:当前|哪个|什么|所有|列出|查看).*分支)`,
			`(?P<status>\bgit\b|\b(?:repo|repository|working tree)\b.*\b(?:status|state|clean|dirty|changes)\b|status of (?:the |my |this )?(?:git|repo|repository|working tree)|\b(?:uncommitted|unstaged|untracked|modified|changed)\b.*|(?:what|which)(?: files?)?(?: has| have| is| are| was| were)?(?: been)? (?:changed|modified)|(?:any|pending|local|my) changes\b|did (?:i|we|anyone) (?:change|modify|edit)|仓库(?:的)?(?:状态|情况|干净)|(?:改动|修改|变更|改)了?(?:什么|哪些|啥)|哪些(?:文件)?(?:被)?(?:改|修改|变)|未提交|有没有(?:改动|变更|修改))`,
		}, make: git},
		{intent: "time", example: words{"what time is it?", "现在几点了？"}, patterns: []string{
			`what(?:'s| is)?(?: the)?(?: current| local| exact)? (?:time|date|day|year|month|weekday)\b|whats the (?:time|date)|\bcurrent (?:time|date)\b|\btoday'?s (?:date|day)\b|(?:which|what) day\b|^(?:the )?(?:time|date|clock|today)$|(?:tell|give|show|know|check)\b.*\b(?:time|date)\b|date and time|do you have the time|what is today`,
			`几点|现在(?:的|是)?(?:什么)?时间|今天(?:是)?(?:的)?(?:几号|星期几|周几|礼拜几|日期|几月|哪天|多少号|什么日子)|当前(?:的)?(?:时间|日期)|星期几|周几|几月几[号日]|^(?:时间|日期)$|什么时候了|今夕是何年|几号了?$`,
		}, make: clock},
		{intent: "status", example: words{"status", "状态"}, patterns: []string{
			`^(?:/?status|session(?: info)?|usage|tokens?|costs?|context|stats|statistics)$|\b(?:session|your|current|system|show|check|what)\b.*\b(?:status|usage|stats)\b|how (?:many tokens|much (?:context|did (?:this|it|that|i)|have (?:i|we)|has (?:this|it)|money|does this cost|is left of))|\btokens?\b.*\b(?:usage|used|count|left|so far|spent)\b|\bcontext (?:window|size|usage|left)\b|how full\b|\bwhat (?:did|has) (?:this|it|that) cost`,
			`(?:会话|当前|系统|运行|你的)?(?:的)?状态|(?:用|花|消耗)了?(?:多少|几个)(?:token|令牌|钱|额度|费用)*|用量|(?:token|令牌).*(?:多少|统计|使用)|上下文(?:用了|还剩|多少|大小|窗口|占用)|(?:费用|花费|成本)(?:是|多少|统计)?`,
		}, make: status},
		{intent: "calculate", example: words{"what is 12 * 7?", "算一下 12 * 7"}, patterns: []string{
			`^(?:what(?:'s| is| does)|whats|calculate|compute|eval(?:uate)?|how much is|solve|work out|算算|算一?下?|计算一?下?|请问)?[\s:：]*(?P<x>[\d(（.\-+][\d\s.,+\-*/^%()（）×÷xX]*(?:(?:plus|minus|times|multiplied by|divided by|percent of|of|加上?|减去?|乘以?|除以)\s*[\d\s.,+\-*/^%()（）×÷]+)*)\s*(?:=|equals?|equal to|等于多少|等于几|等于|是多少|得多少|得几)*[\s?？=]*$`,
		}, make: sum},
	}
}

// changeRows change something, or fetch something from outside.
func changeRows() []row {
	return []row{
		{intent: "fetch", example: words{"fetch https://example.com", "抓取 https://example.com"}, patterns: []string{
			`{U}`, `^(?:fetch|visit|browse(?: to)?|go to|navigate to|open|get|download|load|抓取|访问|浏览|打开|获取|下载)\s*(?:up )?(?:the )?(?:web ?page|page|web ?site|site|url|address|link|网页|网站|网址|链接|页面)?\s*(?:at|of|from|on)?\s*(?P<site>{P})`,
			`^(?:fetch|visit|browse|download|抓取|访问)\s*(?:an? |the |a web ?|这个|一个)*(?P<none>page|site|website|url|web ?page|网页|网站|网址)?$`,
		}, make: fetch},
		{intent: "websearch", example: words{"search the web for tide tables", "上网搜索潮汐表"}, greedy: true, patterns: []string{
			`^(?:search|look|browse|check|query)\s*(?:up )?(?:on |in |through )?(?:the )?(?:web|internet|online|google|net)\b(?: for| about)?\s*(?P<q>.+)$`, `^google\s+(?:for )?(?P<q>.+)$`, `^(?:search|look up|find)(?: for)?\s+(?P<q>.+?)\s+(?:on|in) (?:the )?(?:web|internet|google|net)$|^(?:search|look up|find)(?: for)?\s+(?P<q>.+?)\s+online$`,
			`(?:上网|网上|联网|在网上|在互联网上|百度|谷歌)(?:一下)?(?:搜索?|查询?|查找|找)?(?:一下|下)?\s*(?P<q>.+)$`,
		}, make: webSearch},
		{intent: "run", example: words{"run `git status`", "执行 `git status`"}, greedy: true, patterns: []string{
			`^(?:run|execute|exec|launch|invoke|issue|do|try|call|use)\s+(?:the |this |that |a )?(?:following )?(?:shell |bash |terminal |linux |unix )*(?:commands?)?[:\s]*(?P<c>{C}|{Q})(?:\s+command)?(?:\s+(?:in|inside|from|under)\s+(?:the )?(?:folder |directory )?(?P<d>{P})(?: folder| directory)?)?`,
			`^(?:run|execute|exec)\s+(?P<c>.+?)\s+(?:in|inside|from|under)\s+(?:the )?(?:folder |directory )?(?P<d>{P})(?: folder| directory)?$`, `^(?:run|execute|exec)\s*:?\s+(?:(?:the |this |a )?(?:following )?(?:(?:shell |bash |terminal )?command|script|program)\b[:\s]*)?(?P<c>.+)$`, `^(?:type|enter)\s+(?P<c>.+?) (?:in|into|at) (?:the |a )?(?:terminal|shell|console|command line|prompt)$`, `^[$!]\s*(?P<c>.+)$`, `^(?:in the (?:terminal|shell|console),?|use the (?:terminal|shell|console) to|using the (?:terminal|shell),?)\s*(?:run|type|execute)?\s*(?P<c>.+)$`,
			`(?:output|result)s? of (?:running |executing )?(?:the )?(?:command )?(?P<c>{C}|{Q})`, `what (?:does|do|is|happens when (?:you|i) run)\s*(?:the )?(?:command )?(?P<c>{C})`, `^(?P<c>{C})$`, `^(?P<c>(?:echo|pwd|whoami|uname|df|du|free|ps|uptime|hostname|env|printenv|wc|mkdir|touch|curl|ping|npm|python3|cargo|docker|kubectl|systemctl|go (?:build|test|run|vet|version|mod|fmt|env|install))\b[ -]*[^\p{Han}]+)$`, `^(?P<c>(?:grep|find|ls|cat|head|tail|sed|awk|sort|tree|cp|mv|rm|chmod|tar|zip|make|git|which|go|node|ssh) +-[^\p{Han}]+)$`, `^what (?:does|would|is the output of)\s+(?P<c>[a-z][\w\-]*(?: +-[\w\-]+)+)\s*(?:print|output|return|give|show|say|do)?$`,
			`^(?:run|execute|exec)(?: (?:a|the|some|this) (?:shell )?commands?)?$`, `(?:运行|执行|跑)(?:一下|下|一遍|一条|一个)?(?:这个|这条|以下|下面的?)?(?:shell|终端|bash|linux)?(?:命令|指令|脚本|程序)?(?:行)?[:：\s]*(?P<c>.+?)\s*(?:这个|这条|的)?(?:命令|指令|脚本)?$`, `(?:在|用|通过)(?:终端|命令行|shell|控制台)(?:里面?|中|上)?(?:运行|执行|跑|输入|敲)?(?:一下|命令)?[:：\s]*(?P<c>.+)$`, `^(?:运行|执行|跑)(?:一下|一个|一条)?(?:命令|指令)?$`, `命令\s*(?P<c>{C}|{Q})`,
		}, make: runCommand},
		{intent: "replace", example: words{"replace \"old\" with \"new\" in notes.txt", "把 notes.txt 里的“旧”改成“新”"}, patterns: []string{
			`^(?:in|inside|within) (?:the )?(?:file )?(?P<p>{P})[,:]?\s*(?:please )?(?:replace|change|substitute|swap|turn|rename|edit)\s+(?:every |all )?{text}(?P<o>.+?)\s+(?:with|by|to|into|for)\s+{text}(?P<n>.+)$`,
			`^(?:replace|change|substitute|swap|update|turn|edit|correct|fix|rename|modify)\s+(?:every |all |(?:all |each )?(?:the )?occurrences? of )?{text}(?P<o>.+?)\s+(?:with|by|to|into|for)\s+{text}(?P<n>.+?)\s+(?:in|inside|within|of)\s+(?:the )?(?:file )?(?P<p>{P})(?: file)?$`,
			`^(?:edit|change|update|modify|open)\s+(?:the )?(?:file )?(?P<p>{P})(?:\s+so that|\s+and|,|:|\s+by|\s+to|;)*\s+(?:replac(?:e|ing)|chang(?:e|ing)|substitut(?:e|ing)|turn(?:ing)?)\s+{text}(?P<o>.+?)\s+(?:with|by|to|into)\s+{text}(?P<n>.+)$`, `^(?:change|replace|turn)\s+(?P<o>{X})\s+(?:with|by|to|into)\s+(?P<n>{X})$`, `^(?:change|edit|replace|update)\s+{text}(?P<o>.+?)\s+(?:in|inside|of)\s+(?:the )?(?:file )?(?P<p>{P})\s+(?:with|by|to|into)\s+{text}(?P<n>.+)$`,
			`(?:把|将)\s*(?:文件)?\s*(?P<p>{P})\s*(?:这个)?(?:文件)?{里}*的?\s*(?:所有的?|全部的?)?(?P<o>.+?)\s*(?:全部|都|全)?(?:替换|更换|改|换|修改|变|更改)(?:成为?|为|作|做)\s*(?P<n>.+)$`, `(?:在|到|打开|编辑|修改)?\s*(?P<p>{P})\s*(?:文件)?{里}*\s*[,，]?\s*(?:把|将)\s*(?P<o>.+?)\s*(?:全部|都|全)?(?:替换|更换|改|换|修改|变|更改)(?:成为?|为|作|做)\s*(?P<n>.+)$`,
			`^(?:替换|修改|更改)\s*(?P<p>{P})\s*{里}*的?\s*(?P<o>.+?)\s*(?:成为?|为)\s*(?P<n>.+)$`, `^用\s*(?P<n>.+?)\s*(?:替换|代替|换掉|取代)(?:掉)?\s*(?P<p>{P})\s*(?:文件)?{里}*的?\s*(?P<o>.+)$`, `(?:把|将)\s*(?P<o>{X})\s*(?:替换|更换|改|换|修改)(?:成为?|为|作|做)\s*(?P<n>{X})$`,
		}, make: replace},
		{intent: "append", example: words{"add \"eggs\" to list.txt", "在 list.txt 末尾追加“鸡蛋”"}, patterns: []string{
			`^(?:append|add|put|insert|write|attach|stick|tack)\s+(?:the |a |an )?(?:(?:new |another |following )?(?:lines?|texts?|entry|items?|words?|sentence)\s*(?:that says|saying|which says|with(?: the text)?|containing|reading|:|of)?\s*)?(?P<t>.+?)\s+(?:to|at|onto|on|in(?:to)?)\s+(?:the )?(?:very )?(?:end|bottom|tail)\s+of\s+(?:the |my )?(?:file )?(?P<p>{P})`, `^(?:append|add|attach|put|insert|tack|stick|enter|place|record)\s+(?:the |a |an )?(?:(?:new |another |following )?(?:lines?|texts?|entry|items?|words?|sentence)\s*(?:that says|saying|which says|with(?: the text)?|containing|reading|:|of)?\s*)?(?P<t>.+?)\s+(?:on)?(?:to|into|in)\s+(?:the |my )?(?:file )?(?P<p>{P}|it|that file|the file)(?: file)?$`,
			`^(?:append|add)\s+(?:to|into)\s+(?:the |my )?(?:file )?(?P<p>{P})[:,]?\s*(?:the )?(?:following )?(?:line|text|words?)?:?\s*(?P<t>.+)$`, `^(?:append|add)\s+(?:a |another |the |this )?(?:new |following )?(?:line|text|item|entry|words?)?\s*(?:to|into|in|at the end of)\s+(?:the )?(?:end of )?(?:file )?(?P<p>{P})\s*[:,]\s*(?P<t>.+)$`, `^at the (?:end|bottom) of (?P<p>{P}),?\s*(?:add|append|put|write|insert)\s+(?P<t>.+)$`,
			`(?:往|向|给|在|到)?\s*(?:文件)?\s*(?P<p>{P})\s*(?:这个)?(?:文件)?的?(?:末尾|结尾|最后|后面|尾部|最后一行|最后面|里面|里|中|内|上|后)*\s*(?:再|多)?(?:追加|添加|加上|加入|增加|补充|加进|附加|加)(?:一行|一句|一条|一个|内容|文字|一段)*[:：,，是为]*\s*(?P<t>.+)$`, `(?:把|将)\s*(?P<t>.+?)\s*(?:追加|添加|附加|加)(?:到|进|至|在|入)\s*(?:文件)?\s*(?P<p>{P})`, `^(?:追加|添加|加)(?:一行|一句)?[:：]?\s*(?P<t>.+?)\s*(?:到|至|进|在)\s*(?:文件)?\s*(?P<p>{P})`,
		}, make: appendTo},
		{intent: "mkdir", example: words{"create a folder called drafts", "新建文件夹 drafts"}, patterns: []string{
			`^(?:create|make|add|new|set up)\s+(?:me )?(?:an? |the )?(?:new |empty )*(?:folder|dir(?:ectory)?|sub-?(?:folder|directory))\s*(?:called|named|with the name|at)?\s*:?\s*(?P<p>{X}|[\w.\-/]+)$`, `^(?:create|make|add)\s+(?:an? |the )?(?:new )?(?P<p>{X}|[\w.\-/]+)\s+(?:folder|directory)$`,
			`(?:创建|新建|建立|建|生成)(?:一个|个)?(?:新的?|空的?)?{夹}(?:叫做?|名为|名叫|命名为|名字叫|名称为)?[:：\s]*(?P<p>{X}|[^\s，。,]+)$`, `(?:创建|新建|建立|建)(?:一个|个)?(?:叫做?|名为|名叫)?\s*(?P<p>{X}|[\w.\-/]+)\s*的?{夹}`,
		}, make: mkdir},
		{intent: "copy", patterns: []string{
			`^(?P<v>copy|duplicate|move|rename|mv|cp)\s+(?:the )?(?:file |folder )?(?P<p>{P})\s+(?:file |over )?(?:to|as|into|in)?\s*(?:the )?(?:folder |directory )?(?P<d>{X}|[\w.\-/]+)(?: folder| directory)?$`, `(?:把|将)?\s*(?:文件)?\s*(?P<p>{P})\s*(?P<v>复制|拷贝|移动|移|重命名|改名|更名)(?:到|为|成|至)\s*(?P<d>{X}|[\w.\-/]+)(?:{夹}|里|中)*$`, `^(?P<v>复制|拷贝|移动|重命名)\s*(?:文件)?\s*(?P<p>{P})\s*(?:到|为|成|至)\s*(?P<d>{X}|[\w.\-/]+)(?:{夹}|里|中)*$`,
		}, make: copyMove},
		{intent: "delete", example: words{"delete old.txt", "删除 old.txt"}, patterns: []string{
			`^(?:delete|remove|erase|rm|trash|get rid of|discard|unlink)\s+.*{P}`, `(?:删除|删掉|删了|移除|清除|扔掉|删)(?:一下)?(?:文件)?\s*{P}`, `(?:把|将)\s*(?:文件)?\s*{P}.*(?:删除|删掉|删了|移除|清除|扔掉|删)`, `^(?:delete|remove|erase) (?P<it>it|that file|the file|this file)$|^(?P<it>(?:把它)?(?:删除|删掉|删了)(?:它|这个文件)?)$`,
		}, make: remove},
		{intent: "write", example: words{"create hello.txt with \"hi\"", "新建 hello.txt，内容是“你好”"}, patterns: []string{
			`^(?:write|save|store)\s+(?:the following|this)(?: text| lines?| words?)?\s+(?:in(?:to)?|to)\s+(?:the )?(?:file )?(?P<p>{P})\s*[:：]\s*(?P<t>.+)$`, `^(?:把|将)?(?:下面|以下|这)(?:的|些|段|句)*(?:话|内容|文字)?(?:写入|写到|写进|保存到|存到)\s*(?P<p>{P})\s*[:：]\s*(?P<t>.+)$`,
			`^(?:write|save|store|dump|output)\s+(?:down )?(?:the )?(?:following )?(?:text |words? |line |contents? |note |string |phrase |message |sentence )?:?\s*(?P<t>.+?)\s+(?:in(?:to)?|to|as|under|inside)\s+(?:a |an |the |my )?(?:new )?(?:text )?(?:file )?(?:called |named )?(?P<p>{P}|it|that file)(?: file)?$`,
			`^(?:create|make|write|start|generate|produce|save|add|new|touch|prepare|draft)\s+(?:me )?(?:an? |the |my )?(?:new |empty |blank |text |markdown |simple |small |short |plain )*(?:file|note|document|script)?\s*(?:called|named|titled|at|with (?:the )?name)?\s*:?\s*(?P<p>{P})(?: file)?\s*[,:;]?\s*(?:(?:and|which|that|it should|then|where)\s+)*(?:with|containing|contains?|saying|says?|reading|reads|holding|has|have|put(?:ting)?|writ(?:e|ing)|including|include|whose content is|inside)?\s*(?:in it |into it )?(?:the )?(?:following )?(?:contents?|text|words?|lines?|message|string)?\s*(?:of|being|is|in it|:)?\s*[:]?\s*(?P<t>.*)$`,
			`^(?:create|make|write|add|save)\s+(?:me )?(?:an? )?(?:new )?(?:text )?(?:file|note|document)\s+(?:with|containing|that says|saying|that contains)\s+{text}(?P<t>.+?)\s+(?:and (?:call|name) it|called|named|in|as|at)\s+(?P<p>{P})$`, `^(?:create|make|write|add|save|new)\s+(?:me )?(?:an? |the )?(?:new |text |empty )*(?:file|note|document)$`,
			`(?:把|将)\s*(?P<t>.+?)\s*(?:写入|写到|写进|写在|保存到|保存为|保存在|保存成|保存进|存到|存入|存为|存进|存成|记到|记录到|记在|放到|放进|输出到)\s*(?:文件)?\s*(?P<p>{P})`, `(?:在|往|向)\s*(?:文件)?\s*(?P<p>{P})\s*(?:文件)?{里}*\s*(?:写入|写上|写下|写进|写|填入|输入|保存|记录|记下)(?:内容|一行|一句)?[:：]?\s*(?P<t>.+)$`, `^(?:写入|保存|写)\s*(?P<t>.+?)\s*(?:到|至|进)\s*(?:文件)?\s*(?P<p>{P})`,
			`(?:创建|新建|建立|建|生成|写|做|弄|新增|添加)(?:一个|个|一份|一篇|一下|一张)?(?:新的?|空的?|空白的?)?(?:文本|markdown)?(?:文件|文档|笔记|便签|脚本)?(?:叫做?|名为|名叫|命名为|名字叫|名字是|名称为)?[:：\s]*(?P<p>{P})\s*的?(?:文件|文档|笔记)?[,，、。;；\s]*(?:并且?|然后)?(?:在?(?:文件)?(?:里面|里|其中|中))?的?(?:内容|文字|文本)?(?:写入|写上|写着|写|填入|放入|保存|包含|输入|存)?(?:内容|文字)?(?:是|为)?[:：,，\s]*(?P<t>.*)$`, `^(?:创建|新建|建立|写)(?:一个|个|一份)?(?:新的?)?(?:文本)?(?:文件|文档|笔记)$`,
		}, make: write},
	}
}

// lookRows look at files.
func lookRows() []row {
	return []row{
		{intent: "count", example: words{"how many lines has notes.txt?", "notes.txt 有多少行？"}, patterns: []string{
			`how (?:many|long)\b.*\b(?P<w>lines|words|characters|bytes|chars)\b.*{P}`, `how (?P<w>long|big|large) is\b.*{P}`, `(?:count|number of)\b.*\b(?P<w>lines|words|characters|chars|bytes)\b.*{P}`, `{P}.*(?:多少|几)(?P<w>行|个?字符?|字节)`, `(?:统计|数一?下?|数数).*{P}.*(?P<w>行|字)`, `{P}.*(?P<w>多大|多长|大小)`,
		}, make: count},
		{intent: "lines", example: words{"show the first 10 lines of notes.txt", "看看 notes.txt 的前10行"}, patterns: []string{
			`\b(?:first|top|beginning|head|initial)\b\s*(?P<n>\w+)?\s*(?:lines?|rows?)?.*{P}`, `\b(?P<last>last|bottom|final|tail|end)\b\s*(?:of )?(?P<n>\w+)?\s*(?:lines?|rows?)?.*{P}`, `lines? (?P<a>\d+)\s*(?:-|to|through|until|–|and)\s*(?P<b>\d+).*{P}`, `^line (?P<a>\d+).*{P}`, `{P}.*lines? (?P<a>\d+)\s*(?:-|to|through|–)\s*(?P<b>\d+)`,
			`{P}.*(?:前面?|头|开头)(?:的)?\s*(?P<n>[\d一二两三四五六七八九十]+)?几?行`, `{P}.*(?P<last>后面?|末尾|最后|结尾|倒数)(?:的)?\s*(?P<n>[\d一二两三四五六七八九十]+)?几?行`, `{P}.*第\s*(?P<a>\d+)\s*(?:行)?\s*(?:-|到|至|~)\s*(?:第)?\s*(?P<b>\d+)\s*行`, `{P}.*第\s*(?P<a>\d+)\s*行`, `前\s*(?P<n>[\d一二两三四五六七八九十]+)\s*行.*{P}`,
		}, make: lines},
		{intent: "find", example: words{"find all .go files", "找出所有 .go 文件"}, patterns: []string{
			`^(?:find|locate|search(?: for)?|look(?:ing)? for|list|show|get)\s+(?:me )?(?:all |any |every )*(?:the |my )?(?:files?|documents?)\s+(?:that have |which have )?with\s+(?P<q>{X}|\S+)\s+in (?:the|its|their) (?:file ?)?names?$`, `^(?:find|locate|search(?: for)?|look(?:ing)? for|list|show|get|where (?:is|are)|are there|is there|do (?:i|we|you) have|any|give)\s*(?:me )?(?:all |any |every |a |an )*(?:the |my |of the )?(?:files?|documents?)\s+(?:(?:that|which|whose) (?:are |is |have |has )?)?(?:names? )?(?:named|called|matching|match(?:es)?|with (?:the |an? )?(?:name|extension|ending|suffix)?(?: of)?|ending (?:in|with|on)|ends? (?:in|with)|like|containing in (?:the|its|their) name|contains?|is|start(?:s|ing)? with|of type)\s+(?:the )?(?:names? |pattern |extension )?(?P<q>{X}|\S+)(?:\s+(?:in (?:the |its |their )?(?:file ?)?name)?)?(?:\s*(?:in|inside|under|within)\s+(?P<p>.+))?$`,
			`^(?:find|locate|search(?: for)?|look(?:ing)? for|list|show|get|where are|are there|is there|do (?:i|we|you) have|any|give|what|which|how many|see)\s*(?:me )?(?:all |any |every |of |the |my |our )*(?P<ext>{P}|[a-z+#]+)[\s-]*(?:source |code |text )?(?:files?|scripts?|documents?|sources|code|pictures|ones)\b(?: (?:are|do|is|exist|there|here|we|i|have|you|see|any)+)*(?:\s*(?:in|inside|under|within|from|below)\s+(?P<p>.+?))?$`, `^(?:find|list|show|any|get)\s*(?:me )?(?:all |any |the |my )*(?P<ext>images|pictures|photos|pdfs|spreadsheets|scripts)(?:\s*(?:in|inside|under|within|from)\s+(?P<p>.+?))?$`,
			`^(?:find|locate|where(?:'s| is| are)|search for|look for|in which (?:folder|directory) is|which (?:folder|directory) (?:is|has))\s+(?:the |a |my |all |any )?(?:file |files |folder )?(?P<q>{P})(?:\s+files?)?(?:\s*(?:in|inside|under|within|on)\s+(?P<p>.+?))?(?: located| stored| saved| kept)?$`, `^(?:is there|are there|do (?:i|we|you) have|any|have (?:i|we) got|does it have)\s+(?:a |an |any |the )?(?:file )?(?:called |named )?(?P<q>{P})(?: files?)?(?:\s+(?:anywhere|here|somewhere|around))*(?:\s*(?:in|inside|under)\s+(?P<p>.+))?$`, `^where (?:did i (?:put|save|leave)|can i find|do i find)\s+(?:the |my )?(?:file )?(?P<q>{P})`, `^(?:find|locate|look for|search for|where is)\s+(?:the |a |my )?(?:file|files)$`, `^(?:find|locate)\s+(?:the |a |my )?(?P<q>[\w\-]+)\s+(?:file|folder|directory)$`,
			`(?:查找|寻找|搜索|搜寻|找|搜|列出|有没有|有无)(?:一下|下|出|到)?(?:所有|全部|一个)?的?(?:文件)?(?:名字(?:里面?|中|是)?(?:包含|含有|带有?|有)|名为|名叫|名字叫?|叫做?|名称(?:为|是|包含)|文件名(?:为|是|包含|含有|叫|里有|带有?)|名字(?:里|中|是)?(?:包含|含有|带有?|有)?)\s*(?P<q>.+?)(?:的?(?:所有)?文件)?$`, `^(?:在)?\s*(?P<p>{X}|[\w./\-]+)?\s*{夹}?{里}*(?:查找|寻找|搜索|找|搜|列出|有哪些|显示|有没有|有什么|有多少|哪里有)(?:一下|下|出|到)?(?:所有|全部|哪些)?的?\s*(?P<ext>{P}|[A-Za-z+#]+|图片|照片|文本|脚本)\s*(?:结尾|后缀|格式|类型|语言)?的?\s*(?:文件|脚本|文档|代码|源码)(?:都?在哪里?|有哪些)?$`, `(?:后缀|扩展名|格式|结尾)(?:名)?(?:为|是)\s*(?P<q>{P}|\w+)`, `^(?:找|查找|搜索|列出|看看|显示)(?:出|一下|到)?(?:所有|全部)的?(?P<ext>图片|照片|脚本)$`, `(?:所有|全部)的?\s*(?P<ext>{P}|[A-Za-z+#]+|图片)\s*(?:格式|类型|后缀|结尾)?的?(?:文件|脚本|文档)`,
			`(?P<q>{P})\s*(?:这个)?(?:文件)?(?:到底)?(?:是)?(?:放|存|保存|位于)?在(?:哪里?|哪儿|哪个{夹}|什么地方|何处)`, `^(?:查找|寻找|找|搜索|搜)(?:一下|到|下)?\s*(?:文件)?\s*(?P<q>{P})\s*(?:文件|这个文件)?$`, `(?:在)\s*(?P<p>{X}|[\w./\-]+)\s*{夹}?{里}*(?:查找|寻找|找)(?:一下|到|下)?\s*(?:文件)?\s*(?P<q>{P})$`, `^(?:查找|寻找|找)(?:一下|个)?文件$`,
		}, make: find},
		{intent: "grep", example: words{"search for TODO in src", "在 src 里搜索 TODO"}, patterns: []string{
			`^(?:grep|rg)\s+(?P<q>\S+|{X})\s+(?P<p>{P})$`, `^(?:which|what) (?:files?|documents?|notes?|ones?)(?: here)? (?:contains?|mentions?|has|have|uses?|includes?|references?|talks? about|say)\s+{text}(?P<q>.+?)(?:\s+(?:in|inside|under)\s+(?P<p>{dir}))?$`, `^(?:list|show|find|search for|get|give|is there|are there|do (?:i|we) have)(?: me)?(?: all| any| every| a| an)?(?: the| my)? (?:files?|documents?|notes?|code|place) (?:that |which )?(?:contain(?:s|ing)?|mention(?:s|ing)?|with|using|that use|referenc(?:e|ing)|about|including|includes?|say(?:ing)?|has|have|having)\s+{text}(?P<q>.+?)(?:\s+(?:in|inside|under|within)\s+(?P<p>{dir}))?$`,
			`^(?:find|show|list|get|search(?: for)?|give|look for)(?: me)?(?: all| every| any| each)?(?: of)?(?: the)? (?:lines?|occurrences?|mentions?|usages?|uses|matches|places|instances|references?|appearances?|text)\s+(?:of|for|with|containing|that contain|that mention|where|to|matching|mentioning)?\s*{text}(?P<q>.+?)(?:\s+(?:in|inside|within|under|across|appears? in|is used in)\s+(?P<p>{dir}))?$`, `^(?:find(?: out)?|show|tell|look up|see|check|search)?(?: me)?\s*where(?:'s| is| are| do (?:we|i|you)| does)?\s+(?:the )?(?:word |text |function |variable )?(?P<q>.+?)(?:\s+(?:is|are|gets?|was|being))?\s+(?:used|mentioned|defined|called|referenced|declared|written|appear|occur|come up|use|mention|define|call)(?:s|ed)?(?:\s+in\s+(?P<p>{dir}))?$`,
			`^(?:search|grep|scan|look|hunt|check|query|rg|go)\s+(?:through |inside |in |within |into )?(?P<p>{dir})\s+for\s+{text}(?P<q>.+)$`, `^(?:in|inside|within|under)\s+(?P<p>{dir}),?\s+(?:search|grep|look|scan|find|check)\s+(?:for )?{text}(?P<q>.+)$`, `^(?:search|grep|scan|look|hunt|check|find|locate|seek|rg)\s+(?:me )?(?:for\s+|up\s+)?(?:any |all |every |mentions? of |occurrences? of |uses of )*{text}(?P<q>.+?)\s+(?:in|inside|within|under|across|through(?:out)?|from|among)\s+(?:all )?(?P<p>{dir})$`, `^(?:search|grep|scan|rg)\s+(?:for\s+)?{text}(?P<q>.+)$`, `^(?:look|hunt)\s+(?:for|up)\s+{text}(?P<q>.+)$`, `^find\s+{text}(?P<q>{Q}|{C}|[A-Z_]{3,})$`,
			`^(?:are|is) there (?:any |an? |some )?(?P<q>[^\x{E000}-\x{E0FF}]+?)s? (?:in|inside|within|anywhere in)\s+(?P<p>{dir})$`, `^(?:is|are|does|do)\s+(?:there )?(?:any )?(?:the )?(?:(?:word|text|string|phrase|name)s? )?(?P<q>[^\x{E000}-\x{E0FF}]+?)\s+(?:appear |occur |exist |mentioned |anywhere |used |listed )*(?:in|inside)\s+(?P<p>{P})$`, `^(?:does|do|is there|are there|has|check (?:if|whether))\b.*?(?P<q>{Q}|{C}).*\b(?:in|inside)\s+(?P<p>{P})`, `^(?:check|see|find out)?\s*(?:if|whether)\s+(?P<p>{P})\s+(?:contains?|mentions?|has|have|includes?)\s+{text}(?P<q>.+)$`, `^where (?:do|did) (?:i|we|they|you) (?:mention|use|define|call|talk about|write about|say)\s+{text}(?P<q>.+)$`, `^does\s+(?P<p>{P})\s+(?:contain|mention|have|include)\s+{text}(?P<q>.+)$`, `^(?:search|grep|search (?:in )?files)$`,
			`(?:哪里|哪儿|什么地方)(?:有|都)?(?:用到|使用|提到|提及|出现|定义|调用|写)(?:过|了)*\s*(?P<q>.+)$`, `(?:找出?|查找|搜索|搜出?|列出)(?:来|一下|所有|全部)*(?:包含|含有|提到|带有|出现)\s*(?P<q>.+?)\s*的?(?:所有)?(?:文件|地方|行|内容)$`, `(?:哪些|哪个|什么|哪几个|有没有)文件{里}*(?:包含|含有|提到|提及|出现了?|写了?|用到了?|有)\s*(?P<q>.+)$`, `(?:在|从|到)\s*(?P<p>{X}|[\w./\-]+|(?:当前|这个|本|整个|所有)?(?:目录|文件夹|项目|工作区|文件|代码|仓库))\s*(?:{夹}|文件)?{里}*\s*(?:搜索|查找|检索|搜寻|寻找|搜|查|找|grep)(?:一下|下|出|找|一遍)?(?:所有|全部)?(?:包含|含有|带有|出现|提到|有)?(?:的)?(?:关键[词字]|文字|文本|字符串|单词|内容|字样)?[:：]?\s*(?P<q>.+?)(?:的?(?:文件|行|地方|内容|位置|字样|文字|代码))?$`,
			`(?:搜索|检索|查找|搜寻|搜|查|找|grep)(?:一下|下|找)?(?:所有|全部)?\s*(?P<p>{X}|[\w./\-]+|(?:当前|这个|整个)(?:目录|文件夹|项目))\s*(?:{夹}|文件)?{里}(?:的|有没有|包含|提到|出现|所有)*\s*(?P<q>.+?)(?:的?(?:文件|行|地方|内容))?$`, `(?P<p>{P}|[\w./\-]+|代码|项目|文件|仓库|当前目录|工作区)\s*{夹}?{里}(?:有没有|是否有|是否包含|有无|包不包含)(?:提到|出现|包含|写)?\s*(?P<q>.+)$`, `^(?:查一下|查查|找一下|看看|查找)?\s*(?P<q>.+?)\s*(?:这个词|这个函数|这个变量)?(?:都)?(?:出现|用|定义)?在(?:哪里|哪儿|哪些文件|哪个文件|哪些地方|什么地方)(?:里|中)?(?:有)?(?:出现|用到|使用|提到|定义|被用)(?:过|了)?$`,
			`^(?:全局|到处|全文|全部)?(?:搜索|检索|搜寻|搜|grep|查找|查|找)(?:一下|下|找|出|到)?(?:所有|全部)?(?:包含|含有|提到|关键[词字]|文字|文本|字符串|内容)*[:：]?\s*(?P<q>.+?)(?:的?(?:文件|行|地方|内容|位置))?$`, `^(?:搜索|检索|查找)(?:一下|内容|文件)?$`,
		}, make: grep},
		{intent: "read", example: words{"show notes.txt", "看看 notes.txt 里写了什么"}, patterns: []string{
			`^(?P<sum>summari[sz]e|sum up|tl;?dr|give (?:me )?(?:an? |the )?(?:short |brief )?(?:summary|overview|gist) of|what is the gist of)\b.*{P}`, `(?P<sum>总结|概括|摘要|归纳).*{P}|{P}.*(?P<sum>总结|概括|摘要|归纳)`,
			`^{see}\b.*{P}`, `^(?:what(?:'s| is| are| was| does| do| did)?|whats|tell me what)\b.*{P}`, `(?:contents?|text|inside|body|lines) (?:of|in) .*{P}`, `^(?:the )?(?:file )?(?:{P}(?:\s+file)?[\s,、，]*(?:and|&|和|与|及|以及|跟)?\s*)+$`,
			`{看}.*{P}`, `{P}.*(?:写了?|有|是|包含|讲|说|记)(?:了|着|的是|的)?(?:些|一些)?(?:什么|啥|哪些)`, `{P}.*(?:内容|看看|看一下|看下|读|打开|显示|给我看|念|瞧|看)`,
			`^{see}\s+(?:me )?(?:at )?(?:what(?:'s| is) (?:in|inside) )?(?P<it>it|that|this|that file|this file|its contents?|the contents?(?: of (?:it|that file|the file))?|it back|the same file|that one)(?: again| back| to me| now)?$`, `^(?:把它?)?{看}(?:一下)?(?P<it>它|这个文件|那个文件|该文件|此文件|刚才的文件|文件内容|它的内容|里面的?内容|内容)?(?:的内容|给我看)?$`, `^(?:read|open|show|display|cat|view|print)(?: me)?(?: (?:a|the|some|that|my|this))?(?P<it> (?:file|note|document))?$`,
		}, make: read},
		{intent: "ls", example: words{"list the files in src", "把当前目录列出来"}, patterns: []string{
			`^(?:ls|dir|ll|tree)(?:\s+-\w+)*(?:\s+(?P<p>{P}|[\w./~\-]+))?$`, `^list(?:\s+(?P<p>{P}))?$`,
			`^(?:list|show|display|see|view|print|what|whats|which|get|give|enumerate|tell|check|look|explore|browse|open|are there|how many|let|any|inspect)\b.*?\b(?:files?|folders?|director(?:y|ies)|dirs?|subfolders?|contents?|documents|stuff|things|entries|items|everything)\b(?:.*?\b(?:in|inside|of|under|within|from|at|on|named|called)\s+(?P<p>.+)|[\w\s,']{0,40})?$`, `^(?:list|show|display|see|view|open|explore|browse|check|what(?:'s| is| are) in|look (?:in|into|inside|at))(?: me)?\s+(?:the )?(?P<p>[\w./\-]+|{X})(?:'s)? (?:folder|directory|dir)(?:'s)?(?: contents?| files?| listing)?(?:,? (?:and )?(?:tell|show)(?: me)? what(?:'s| is)? (?:there|inside|in (?:it|there)|you (?:see|find)))?$`, `^what(?:'s| is| do (?:i|we|you) have| are| have (?:i|we))(?: all)?(?: stored| located| there)?\s+(?:in|inside|under|within)\s+(?P<p>.+)$`, `^what(?:'s| is| do (?:i|we|you) have| have (?:i|we)(?: got)?)?(?: all)? (?:here|in here|there|around here|lying around)|^(?:show|list)(?: me)? (?:what(?:'s| is) )?(?:here|around|everything)$`, `^list\s+(?P<p>[\w./\-]+|{P})$`, `^(?:folder|directory|workspace|file) (?:contents?|listing|list)$|^files$`,
			`(?:在|把|将|列出|列一下|列|显示|看看|看一下|看下|查看|看|展示|浏览|打开|进入|查一下)?\s*(?P<p>{X}|[\w./\-]+|上级|上一级)?\s*(?:这个|那个|的)?(?:当前|本|这个|此|工作|整个)?的?(?:目录|文件夹|工作区|路径|工作目录){里}*(?:的|都|还|一共|总共|到底)*(?:所有|全部)?的?(?:文件和文件夹|文件|内容|东西|列表|子目录|文件夹|清单)?(?:都)?(?:有|是|包含|放着?)?(?:了)?(?:些|一些)?(?:哪些|什么|啥|多少|几个)?(?:个)?(?:文件|东西|内容)?(?:列|显示|展示|打印|给我看|看)?(?:一下|出来|给我|看看)*$`, `^(?:看看|看一下|看下|查一下)?(?:这里|这儿|当前)?(?:都)?(?:有哪些|有什么|有啥|有多少|列出|列一下|列|显示|查看|看看|看下|看一下|浏览)(?:一下)?(?:所有|全部|的|当前|这里的?|个)*(?:文件和文件夹|文件|东西|目录|文件夹|内容)(?:列表|清单)?$`, `^(?:{看})?\s*{夹}?\s*(?P<p>{X}|[\w./\-]+|这里|这儿|工作区)\s*{夹}?{里}?(?:都|还)?(?:有|是|放了?)(?:些|一些)?(?:什么|哪些|啥|多少)(?:文件|东西|内容)?$`, `(?:列出|列一下|列|查看|看看|显示|浏览)\s*{夹}?\s*(?P<p>{X}|[\w./\-]+)\s*{夹}?{里}?(?:的|所有|全部)*(?:文件|内容|东西|列表)?$`, `^(?:列出|列)(?:来|一下)?$|文件列表|列出来`,
		}, make: list},
	}
}
