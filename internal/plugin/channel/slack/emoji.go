package slack

import "strings"

// emojiNames returns Slack's names of emojis: pairs of a character and a name.
const emojiNames = `👍 +1 👎 -1 👀 eyes ✅ white_check_mark ❌ x ❤ heart 🔥 fire 🎉 tada 😂 joy 😀 grinning 😃 smiley 😄 smile 😁 grin 😆 laughing
😅 sweat_smile 🤣 rolling_on_the_floor_laughing 🙂 slightly_smiling_face 🙃 upside_down_face 😉 wink 😊 blush 😇 innocent 😍 heart_eyes
🤩 star-struck 😘 kissing_heart 😋 yum 😎 sunglasses 🤔 thinking_face 🤨 face_with_raised_eyebrow 😐 neutral_face 😑 expressionless 😏 smirk
😒 unamused 🙄 face_with_rolling_eyes 😬 grimacing 😌 relieved 😔 pensive 😴 sleeping 🤒 face_with_thermometer 🤯 exploding_head 🥳 partying_face
😢 cry 😭 sob 😤 triumph 😠 angry 😡 rage 😱 scream 😳 flushed 😞 disappointed 😟 worried 😕 confused ☹ white_frowning_face 😮 open_mouth
😯 hushed 😲 astonished 🥺 pleading_face 😨 fearful 😰 cold_sweat 😓 sweat 🤗 hugging_face 🤫 shushing_face 🤐 zipper_mouth_face 🤖 robot_face
💩 hankey 👻 ghost 💀 skull 👋 wave ✋ hand 👌 ok_hand ✌ v 🤞 crossed_fingers 🤘 the_horns 🤙 call_me_hand 👈 point_left 👉 point_right
👆 point_up_2 👇 point_down ☝ point_up ✊ fist 👊 facepunch 👏 clap 🙌 raised_hands 🤝 handshake 🙏 pray 💪 muscle 🤷 shrug 🤦 face_palm
🧠 brain 💯 100 ⭐ star 🌟 star2 ✨ sparkles ⚡ zap 💥 boom 💡 bulb 💔 broken_heart 💙 blue_heart 💚 green_heart 💛 yellow_heart 💜 purple_heart
🖤 black_heart 🧡 orange_heart 💤 zzz 💬 speech_balloon 💭 thought_balloon ⏳ hourglass_flowing_sand ⌛ hourglass ⏰ alarm_clock ⏱ stopwatch
📅 date 📆 calendar 📌 pushpin 📎 paperclip 📝 memo 📖 book 📚 books 📧 e-mail ✉ email 📞 telephone_receiver 📷 camera 💻 computer 🔧 wrench
🔨 hammer ⚙ gear 🔍 mag 🔒 lock 🔓 unlock 🔑 key 🔗 link 🔔 bell 🔕 no_bell ❓ question ❗ exclamation ⚠ warning 🚫 no_entry_sign ⛔ no_entry
🛑 octagonal_sign ☑ ballot_box_with_check ✔ heavy_check_mark ✖ heavy_multiplication_x ➕ heavy_plus_sign ➖ heavy_minus_sign 🔴 red_circle
🟢 large_green_circle 🔵 large_blue_circle 🟡 large_yellow_circle ▶ arrow_forward ⏸ double_vertical_bar 🔄 arrows_counterclockwise ♻ recycle
➡ arrow_right ⬅ arrow_left ⬆ arrow_up ⬇ arrow_down 🚀 rocket 🏁 checkered_flag 🏆 trophy 🎁 gift 🎂 birthday 🍕 pizza ☕ coffee 🍺 beer 🍾 champagne
☀ sunny ☁ cloud 🌈 rainbow ❄ snowflake 🌍 earth_africa 🐛 bug 🐢 turtle 🐱 cat 🐶 dog 🦞 lobster 🦀 crab 🌱 seedling 💰 moneybag 📈 chart_with_upwards_trend
📉 chart_with_downwards_trend 🗑 wastebasket 🧵 thread 🕐 clock1 🫡 saluting_face`

// tone returns the end of Slack's name of an emoji with a colour of skin; "": r is none.
func tone(r rune) string {
	if r < '🏻' || r > '🏿' {
		return ""
	}
	return "::skin-tone-" + string('2'+r-'🏻')
}

// emojiName returns Slack's name of an emoji, which may also be given as :name:; "": not
// known.
func emojiName(emoji string) string {
	if word, ok := strings.CutPrefix(emoji, ":"); ok {
		word, ok = strings.CutSuffix(word, ":")
		if !ok || word == "" || strings.ContainsAny(word, " \n\t") {
			return ""
		}
		return word
	}
	end := ""
	bare := strings.Map(func(r rune) rune {
		if t := tone(r); t != "" {
			end = t
			return -1
		}
		if r == '\ufe0f' { // asks for the emoji instead of a letter
			return -1
		}
		return r
	}, emoji)
	fields := strings.Fields(emojiNames)
	for i := 0; i+1 < len(fields); i += 2 {
		if fields[i] == bare {
			return fields[i+1] + end
		}
	}
	return ""
}
