package index

import (
	"slices"
	"strings"
)

// isCommon reports whether an English word says nothing about the subject of a question.
func isCommon(word string) bool {
	_, found := slices.BinarySearch(commonWords, word)
	return found
}

// commonWords are the function words of English, and the words with which one asks a
// question, gives an order or greets. They are sorted.
var commonWords = strings.Fields(`
	a about above after again against ain all already also although always am an and any anyone anything are aren arent around as ask asked at be
	because been before being below between both but by call called can cannot cant could couldn couldnt d did didn didnt do does doesn doesnt doing
	don done dont down during each either else ever every everyone everything exactly far few find for from further get gets getting give given go
	goes going gone got had hadn hadnt has hasn hasnt have haven havent having he hello help hence her here heres hers herself hey hi him himself his
	how however i id if ill im in into is isn isnt it its itself ive just know known last least less let lets like list ll look m many may maybe me
	mean mention mentioned might mine more most much must mustn my myself need neither never no nobody none nor not note noted notes nothing now of
	off often ok okay on once one only or other others ought our ours ourselves out over own perhaps please put quick quite rather re really recall
	remember remembered remind s said same say says see shall shan she should shouldn shouldnt show since so some somebody someone something
	sometimes somewhere soon still such t take tell than thank thanks that thats the their theirs them themselves then there therefore theres these
	they thing things this those though through thus to together told too took toward towards under unless until up upon us use used using usual
	usually ve very via want was wasn wasnt we well went were weren werent what whats when whenever where wheres whether which while who whom whos
	whose why will with within without won wont would wouldn wouldnt write written wrote yes yet you your yours yourself yourselves`)

// lightWords are common words of any subject, mostly verbs and adverbs. A note often says
// the same with other ones.
var lightWords = strings.Fields(`
	accept actual add ago agree allow alone altogether amount answer appear apply arrange arrive avoid away back bad become begin believe big break bring
	build buy care carry case certain change charge cheap check choose clear close collect come common complete consider contain continue correct cost
	current cut day deal decide deliver describe detail different difficult direct double drive drop early earn easy eat end enough enter entire expect
	expensive explain extra fact fail fall fast feel fill final finish fit fix follow forget free full further general good great grow half handle happen
	hard hear heavy high hold hope hour idea important include instead issue keep kind large late lead learn leave left lend likely little live long lose
	lot love low main major make manage matter maximum meet minimum minute moment month move near necessary need new next nice normal offer old open order
	original part particular pay people percent percentage person personal pick piece place plan point poor possible prefer prepare prevent previous
	problem promise proper provide pull purpose push reach read ready real reason receive recent recommend reduce refuse regular reject remove replace
	reply report require result return right run same save seem sell send separate serious session set several share short side similar simple single sit
	situation slow small solve sort speak special specific spend stand start stay step stop store strong stuff suggest suppose sure switch talk teach term
	think throw time total touch travel true try turn type typical understand various visit wait walk wash watch way wear week whole wide win word work
	worry wrong year young`)

// irregular are words with the ones that they are compared as: irregular forms of verbs and
// nouns, short names of months, and small numbers.
var irregular = strings.Fields(`
	apr:april arisen:arise arose:arise ate:eat aug:august became:become began:begin begun:begin bent:bend best:good better:good bit:bite bitten:bite
	bled:bleed blew:blow blown:blow bore:bear born:bear borne:bear bought:buy broke:break broken:break brought:bring built:build burnt:burn came:come
	caught:catch children:child chose:choose chosen:choose crept:creep dealt:deal dec:december drank:drink drawn:draw dreamt:dream drew:draw driven:drive
	drove:drive drunk:drink dug:dig eaten:eat eight:8 eleven:11 fallen:fall feb:february fed:feed feet:foot fell:fall felt:feel first:1st five:5 fled:flee
	flew:fly flown:fly forbade:forbid forbidden:forbid forgave:forgive forgiven:forgive forgot:forget forgotten:forget fought:fight four:4 froze:freeze
	frozen:freeze geese:goose grew:grow grown:grow halves:half heard:hear held:hold hid:hide hidden:hide hung:hang jan:january jul:july jun:june kept:keep
	knelt:kneel knives:knife laid:lay lain:lie leant:lean learnt:learn led:lead lent:lend lit:light loaves:loaf lost:lose made:make mar:march meant:mean
	men:man met:meet mice:mouse mistaken:mistake mistook:mistake nine:9 nov:november oct:october one:1 overslept:oversleep paid:pay proven:prove ran:run
	rang:ring ridden:ride risen:rise rode:ride rung:ring sang:sing sank:sink sent:send sep:september sept:september seven:7 sewn:sew shaken:shake
	shelves:shelf shone:shine shook:shake shown:show shrank:shrink shrunk:shrink six:6 slept:sleep slid:slide sold:sell sought:seek sown:sow spelt:spell
	spent:spend spilt:spill spoke:speak spoken:speak spun:spin stole:steal stolen:steal stood:stand stricken:strike strove:strive struck:strike
	stuck:stick stung:sting sung:sing sunk:sink swam:swim swept:sweep swollen:swell swore:swear sworn:swear swum:swim swung:swing taught:teach teeth:tooth
	ten:10 thieves:thief third:3rd thought:think three:3 threw:throw thrown:throw tore:tear torn:tear twelve:12 two:2 understood:understand
	undertaken:undertake undertook:undertake undid:undo undone:undo withdrawn:withdraw withdrew:withdraw wives:wife woke:wake woken:wake wolves:wolf
	women:woman won:win wore:wear worn:wear worse:bad worst:bad wove:weave woven:weave`)

// withoutCommon returns what remains of a Chinese question without the words that occur
// in any question.
func withoutCommon(text string) []string {
	var out []string
	rest := text
	begin := 0
	for i := 0; i < len(rest); {
		n := commonPrefix(rest[i:])
		if n == 0 {
			i += runeSize(rest[i:])
			continue
		}
		if i > begin {
			out = append(out, rest[begin:i])
		}
		i += n
		begin = i
	}
	if begin < len(rest) {
		out = append(out, rest[begin:])
	}
	return out
}

// commonPrefix returns the length of the longest common word that a text begins with.
func commonPrefix(text string) int {
	n := 0
	for _, w := range commonChinese {
		if len(w) > n && strings.HasPrefix(text, w) {
			n = len(w)
		}
	}
	if first := runeSize(text); strings.Contains(asking, text[:first]) {
		if next := runeSize(text[first:]); next > 0 && strings.Contains(measures, text[first:first+next]) {
			n = max(n, first+next)
		}
	}
	return n
}

// A measure word that follows one of asking is a part of the question: 哪本, 几次, 多久.
const (
	asking   = "哪几多"
	measures = "个些天年月日点号岁位名人种类样块颗条张本件台辆栋层间家所次回遍趟份套双只支部款座班级分秒钱久长大远高重少深宽"
)

// commonChinese are the function words of Chinese, and the words with which one asks a
// question or gives an order. Single characters that are often a part of other words,
// such as 用 and 要, are not here.
var commonChinese = strings.Fields(`
	的 了 吗 呢 吧 啊 呀 嘛 是 我 你 您 他 她 它 在 和 与 跟 把 被 给 对 就 都 也 还 又 很 那 这 哪 几 谁
	什么 甚么 多少 哪里 哪儿 怎么 怎样 怎么样 怎么办 如何 为什么 为何 是不是 有没有 能不能 可不可以 要不要 会不会 请问 告诉 帮我 查一下 看一下 找一下 一下
	我们 你们 他们 她们 它们 咱们 大家 自己 上次 那次 这次 之前 以前 以后 之后 后来 当时 那个 这个 那些 这些 那里 这里 那么 这么 来着 记得 还记得 记不记得 说过 提过
	写过 记过 忘了 忘记 是什么 叫什么 是多少 是谁 什么时候 时候 现在 已经 曾经 应该 需要 可以 能够 可能 一共 总共 到底 究竟 大概 大约 或者 还是 以及 并且 而且 因为
	所以 但是 不过 虽然 如果 的话 然后 关于 里面 上面 下面 知道 东西 事情 没有 不是 所有 一个 一些 非常 比较 特别 其他 别的`)
