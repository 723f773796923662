// Runs a Telegram bot with grammY, which does what the messages of a person say.
//
//   node grammy.mjs MODULES ROOT TOKEN
//
// Each line of the output is a JSON array: the name of what happened, and its
// details. The line "webhook" on standard input makes the bot serve a webhook
// instead of polling. The bot ends when standard input does.
import { createServer } from "node:http";
import { createRequire } from "node:module";

const [modules, apiRoot, token] = process.argv.slice(2);
const { Bot, GrammyError, InlineKeyboard, InputFile, webhookCallback } = createRequire(modules + "/")("grammy");
const tell = (...what) => console.log(JSON.stringify(what));
const bot = new Bot(token, { client: { apiRoot } });

async function refused(call) {
  try {
    await call();
    return "accepted";
  } catch (e) {
    if (!(e instanceof GrammyError)) throw e;
    return { code: e.error_code, text: e.description, retry: e.parameters.retry_after };
  }
}

bot.command("html", async (ctx) => {
  const m = await ctx.reply("<b>bold</b> &amp; <code>code</code>", {
    parse_mode: "HTML",
    reply_parameters: { message_id: ctx.msgId },
    reply_markup: new InlineKeyboard().text("Yes", "yes").url("Look", "https://example.com"),
  });
  tell("sent", m.message_id, m.chat.id, m.from.id, m.text);
});
bot.command("edit", async (ctx) => {
  const m = await ctx.reply("before");
  const edited = await ctx.api.editMessageText(m.chat.id, m.message_id, "<i>after</i>", { parse_mode: "HTML" });
  tell("edited", edited.message_id === m.message_id, edited.text);
  tell("same", await refused(() => ctx.api.editMessageText(m.chat.id, m.message_id, "<i>after</i>", { parse_mode: "HTML" })));
});
bot.command("photo", async (ctx) => {
  await ctx.replyWithChatAction("upload_photo");
  const m = await ctx.replyWithPhoto(new InputFile(new Uint8Array([137, 80, 78, 71, 0, 255]), "a.png"), { caption: "a <u>picture</u>", parse_mode: "HTML" });
  tell("photo", m.caption, m.photo.length > 0);
  await ctx.react("👍");
  await ctx.pinChatMessage(m.message_id);
  await ctx.api.deleteMessage(m.chat.id, m.message_id);
});
bot.command("errors", async (ctx) => {
  tell("limit", await refused(() => ctx.reply("too many")));
  tell("html", await refused(() => ctx.reply("<b>open", { parse_mode: "HTML" })));
  tell("chat", await refused(() => ctx.api.sendMessage(99, "hello")));
  tell("long", await refused(() => ctx.reply("x".repeat(4097))));
});
bot.command("file", async (ctx) => {
  const f = await ctx.api.getFile(ctx.match);
  const r = await fetch(`${apiRoot}/file/bot${token}/${f.file_path}`);
  tell("file", f.file_size, await r.text());
});
bot.on("callback_query:data", async (ctx) => {
  tell("pressed", ctx.callbackQuery.data, ctx.msgId, await ctx.answerCallbackQuery("thanks"));
});
bot.on("edited_message:text", (ctx) => tell("change", ctx.msg.text, ctx.msg.edit_date >= ctx.msg.date));
bot.on("message:text", (ctx) => tell("heard", ctx.from.first_name, ctx.chat.type, ctx.msg.text, ctx.msg.message_thread_id ?? 0));
bot.catch((e) => tell("failed", String(e.error)));

await bot.init();
tell("me", bot.botInfo.id, bot.botInfo.username, bot.botInfo.is_bot);
await bot.api.setMyCommands([{ command: "help", description: "Help" }]);
tell("hook", (await bot.api.getWebhookInfo()).url);

bot.start({ allowed_updates: ["message", "edited_message", "callback_query"], onStart: () => tell("started") }).catch((e) => tell("stopped", String(e)));
process.stdin.on("data", async (b) => {
  if (String(b).trim() !== "webhook") return;
  await bot.stop();
  await bot.api.setWebhook("https://example.com/hook", { secret_token: "hook-secret_1" });
  tell("webhook", (await bot.api.getWebhookInfo()).url);
  tell("conflict", await refused(() => bot.api.getUpdates()));
  const hook = createServer(webhookCallback(bot, "http", { secretToken: "hook-secret_1" }));
  hook.listen(0, "127.0.0.1", () => tell("listening", hook.address().port));
});
process.stdin.on("end", () => process.exit(0));
