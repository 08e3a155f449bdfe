// The page's words in Chinese; the names of the protocols, events and fields stay as they are on the wire.

export const zh = {
  title: "Dragoman 控制台", now: "刚刚", ok: "确定", cancel: "取消", close: "关闭", copy: "复制", copied: "已复制。", save: "保存", all: "全部", again: "重试", reload: "刷新",
  loading: "加载中…", details: "详情", theme: "浅色或深色", shared: "共享会话，只读", not_found: "会话不存在，或当前密钥无权查看。",
  "shared.gone": "链接已过期或已撤销。", unreachable: "无法连接服务器，页面会自动重试。",
  more_rows: "还有 {n} 项", more_characters: "还有 {n} 个字符", more_text: "继续显示（剩余 {size}）",

  "nav.label": "页面", "nav.skip": "跳到正文", "nav.sessions": "会话", "nav.mappings": "映射", "nav.examine": "检验", "nav.server": "服务器", "nav.clients": "客户端",
  "home.title": "一次对话，所有协议", "home.about": "选择或新建一个会话：可以看到对话内容、规范事件，以及每种协议的客户端实际收到的帧。",
  "home.keys": "按 ? 查看全部快捷键。", keyboard: "键盘",
  "keyboard.all": "n = 新建会话\n/ = 搜索会话\nl = 会话列表\nc = 写消息\np = 协议对照\n, = 后退一条记录\n. = 前进一条记录\n1 2 3 4 = 会话、映射、检验、服务器\n↑ ↓ ← → = 在列表和列中移动\nAlt ← → = 移动列\nEnter = 打开\nEsc = 离开输入框，关闭对话框\n? = 本列表",

  "key.title": "该服务器需要密钥", "key.label": "密钥", "key.about": "密钥只保存在当前标签页。用 `dragoman keys add NAME` 创建。", "key.use": "使用此密钥", "key.wrong": "服务器拒绝了该密钥。", "key.forget": "清除密钥",

  "sessions.label": "会话", "sessions.new": "新建会话", "sessions.import": "导入会话", "sessions.search": "搜索标题、内容、ID", "sessions.status": "状态", "sessions.any_status": "全部状态",
  "sessions.agent": "智能体", "sessions.any_agent": "全部智能体", "sessions.none": "没有会话。", "sessions.asks": "{n} 项待处理", "sessions.turns": "{n} 轮", "sessions.turn": "{n} 轮", "sessions.watching": "有 {dialect} 客户端正在查看",
  "status.running": "运行中", "status.waiting": "等待中", "status.failed": "失败", "status.idle": "空闲", "status.closed": "已关闭",

  "new.agent": "智能体", "new.tools": "本页面的工具", "new.tools_about": "由你自己执行的工具（JSON）：智能体调用时，由你填写结果。", "new.example": "插入示例", "new.create": "创建",

  "session.untitled": "未命名会话", "session.view": "视图", "session.view.talk": "对话", "session.view.both": "并排", "session.view.wire": "协议", "session.back": "返回列表", "session.aside": "显示或隐藏列表", "session.actions": "会话操作",
  "session.rename": "重命名", "session.title": "标题", "session.share": "分享链接", "session.share_about": "在 {time} 之前，任何拥有此链接的人都可以阅读该会话。", "session.compact": "压缩历史", "session.copy_id": "复制会话 ID",
  "session.export_jsonl": "导出为 JSONL", "session.export_zip": "导出为 ZIP", "session.delete": "删除", "session.delete_sure": "会话及其日志将对所有客户端、在所有协议中删除。", "session.gone": "会话已被删除。",
  "line.lost": "连接中断，正在重连…", "line.back": "已重新连接：从记录 {seq} 之后继续，没有遗漏。",

  "conversation.label": "对话", "conversation.empty": "还没有内容。", "conversation.earlier": "显示更早的内容（{n}）",
  "who.user": "你", "who.assistant": "智能体", "who.system": "系统", "who.tool": "工具", thinking: "思考中…", thought: "思考了 {time}",
  picture: "对话中的图片", picture_at: "图片地址", picture_coming: "图片即将到达…", "card.address": "卡片地址", "card.title": "智能体的卡片（沙箱）", "card.show": "显示卡片",
  usage: "{in} → {out} 词元", "usage.title": "输入与输出的词元数", "usage.thinking": "，思考 {n}", "usage.cache": "，缓存 {n}",
  "tool.input": "参数", "tool.output": "当前输出", "tool.result": "结果", "tool.meta": "页面数据", "tool.writing": "生成中", "tool.running": "运行中", "tool.pending": "排队中", "tool.awaiting_input": "等待你处理", "tool.done": "完成", "tool.failed": "失败", "tool.error": "失败", "tool.cancelled": "已取消", "tool.torn": "中断",
  "origin.mcp": "MCP", "origin.client": "客户端", "origin.provider": "提供方",
  "outcome.completed": "完成", "outcome.failed": "失败", "outcome.interrupted": "已中断", "turn.result": "本轮结果",
  "stop.tool_use": "等待工具", "stop.needs_input": "等待用户", "stop.max_tokens": "词元用尽", "stop.max_steps": "步数用尽", "stop.refusal": "拒绝回答", "stop.interrupted": "已中断", "stop.timeout": "超时", "stop.error": "错误",
  scope: "子智能体 {name}", "scope.running": "运行中", "scope.idle": "空闲", "scope.blocked": "阻塞", "scope.ended": "结束", "fault.retryable": "可以重试",
  compacted: "历史已压缩：{before} → {after} 词元", rewound: "已回退到记录 {seq}。", closed: "会话已关闭：{reason}。", custom: "自定义事件", "command.interrupt": "被用户中断", "command.compact": "请求压缩历史", "close.archived": "已归档", "close.deleted": "已删除", "close.terminated": "已终止",
  "annotation.recommended": "推荐问题", "annotation.preface": "前言", "annotation.intent": "意图", "annotation.billing": "计费", "annotation.search": "搜索", "annotation.knowledge": "知识", "annotation.memory_refs": "记忆",

  "ask.question": "智能体提问", "ask.permission": "是否允许智能体执行？", "ask.client_tool": "智能体调用你的工具 {name}。", "ask.continuation": "是否继续？", "ask.rollback": "是否回滚？",
  "ask.own_words": "……或用自己的话回答", "ask.own_words_for": "自己的话：{question}", "ask.answer": "回答", "ask.dismiss": "撤销", "ask.unanswered": "尚未回答：{question}", "ask.reason": "原因（可选）", "ask.allow": "允许", "ask.deny": "拒绝",
  "ask.failed": "工具执行失败", "ask.return": "返回结果", "ask.continue": "继续", "ask.stop": "到此为止", "ask.roll_back_to": "回滚到", "ask.roll_back": "回滚", "ask.keep": "全部保留", "ask.expires": "{time} 过期",
  "ask.past": "（在日志的这一时刻尚未处理）", "ask.too_late": "已有其他人回答。",
  "resolution.answered": "已回答", "resolution.granted": "已允许", "resolution.denied": "已拒绝", "resolution.returned": "已返回结果", "resolution.cancelled": "已撤销", "resolution.expired": "已过期",
  "form.value": "值", "form.needed": "必填", "form.missing": "{name} 为必填项。", "form.not_json": "{name} 不是有效的 JSON。", "form.add": "添加", "form.remove": "移除",

  "composer.label": "给智能体的消息", "composer.placeholder": "给智能体写消息，输入 / 显示指令", "composer.attach": "添加文件", "composer.files": "已添加的文件", "composer.detach": "移除 {name}", "composer.directives": "指令", "composer.hint": "Enter 发送，Shift+Enter 换行", "composer.send": "发送", "composer.stop": "停止",

  "wire.label": "协议对照", "wire.canonical": "规范事件", "wire.columns": "列", "wire.column_menu": "列 {name}", "wire.search": "在帧中搜索", "wire.records": "{n} 条记录", "wire.frames": "{n} 帧，{size}", "wire.filtered": "已筛选",
  "wire.hide": "隐藏", "wire.move_left": "左移", "wire.move_right": "右移", "wire.all_events": "全部事件", "wire.due": "由定时器发送", "wire.dropped": "丢弃：没有对应 {feature} 的表达", "wire.silent": "此处无内容",
  "detail.label": "记录详情", "detail.record": "记录 {seq}", "detail.look": "形式", "detail.pretty": "格式化", "detail.raw": "原文", "detail.curl": "复制为 curl", "detail.cursor": "客户端续传所用的游标", "detail.from": "来自记录 {seqs}", "detail.row": "{cue} · {dialect}.yaml:{line}", "detail.open_table": "打开 {file} 第 {line} 行",
  "time.label": "日志位置", "time.first": "到开头", "time.last": "到末尾", "time.back": "后退一条", "time.forward": "前进一条", "time.play": "播放", "time.play_back": "倒放", "time.pause": "暂停", "time.speed": "速度", "time.live": "实时", "time.where": "{at} / {of}", "time.reconnect": "从此处重连",
  "reconnect.title": "记录 {seq} 处", "reconnect.exchange": "以 curl 表示的请求", "reconnect.exchange_about": "各协议的客户端为产生此记录而发送的请求。", "reconnect.resume": "从此处重连", "reconnect.about": "如果连接在此记录之后断开，各协议的客户端发送的请求，以及收到的内容。", "reconnect.gets": "收到 {n} 帧",

  "mappings.title": "映射", "mappings.losses": "损失", "mappings.translate": "翻译", "mappings.grid": "哪些内容能够传达", "mappings.grid_about": "各协议映射表的声明。点击标记查看说明。", "mappings.feature": "功能", "mappings.no_note": "映射表没有相关说明。",
  "mappings.pairs": "智能体 × 客户端", "mappings.pairs_about": "智能体位于一种协议的服务器之后，客户端使用另一种协议：途中丢失（✗）或以其他形式到达（~）的内容。", "mappings.agent_client": "智能体 ↓ 客户端 →", "mappings.pair": "智能体 {agent}，客户端 {client}：丢失 {lost}，降级 {degraded}", "mappings.lost": "丢失", "mappings.degraded": "降级",
  "mappings.becomes": "每个事件在 {dialect} 中的形式", "mappings.search": "搜索条目", "mappings.cue": "事件或提示", "mappings.out": "成为", "mappings.line": "行",
  "level.full": "完整到达", "level.partial": "部分到达", "level.fallback": "以其他形式到达", "level.dropped": "丢失", "level.rejected": "拒绝",
  "translate.from": "书写形式", "translate.input": "事件或帧", "translate.examples": "示例", "translate.about": "写一个规范事件，或某协议线路上的一帧原文：各列显示其结果。", "translate.added": "为使对话完整而添加",

  "examine.title": "检验服务器", "examine.dialect": "协议", "examine.url": "地址", "examine.key": "密钥", "examine.cases": "要求", "examine.this_gateway": "本网关", "examine.run": "检验", "examine.not_allowed": "当前密钥不能启动检验，但仍可阅读报告。", "examine.drop": "把报告或录制文件拖到这里", "examine.open": "打开文件",
  "examine.past": "以往的检验", "examine.counts": "通过 {passed}，失败 {failed}", "examine.watch": "查看进度", "examine.read": "阅读", "examine.progress": "进度", "examine.starting": "正在启动…", "examine.cancel": "取消", "examine.not_a_report": "该文件既不是报告也不是录制文件。",
  "report.requirements": "要求", "report.requirement": "要求", "report.outcome": "结果", "report.search": "搜索要求", "report.none": "没有符合的要求。", "report.choose": "请选择一项要求。", "report.expected": "期望：", "report.seen": "实际：", "report.reason": "原因：", "report.reproduce": "复现", "report.transcript": "通信记录",
  "verdict.conforms": "符合", "verdict.fails": "不符合", "verdict.incomplete": "不完整", "verdict.passed": "通过", "verdict.failed": "失败", "verdict.running": "运行中", "verdict.cancelled": "已取消", "verdict.error": "错误", "verdict.not testable": "无法检验", "verdict.not applicable": "不适用",

  "clients.title": "谁在使用哪种协议", "clients.about": "客户端指请求中自报的程序。客户端发送或收到过的特性都会计入。计数按天存储，每隔几秒写入一次。", "clients.since": "最近出现于", "clients.days": "{n} 天内", "clients.to": "如果迁移到", "clients.nowhere": "–",
  "clients.dialect": "协议", "clients.client": "客户端", "clients.key": "密钥", "clients.requests": "请求数", "clients.last": "最近一次", "clients.features": "使用的特性", "clients.cost": "将会失去", "clients.none": "没有出现过客户端。", "clients.there": "已在使用", "clients.nothing": "所用特性均不受影响",
  "server.title": "服务器", "server.since": "启动于 {time}", "server.figures": "指标", "server.dialects": "协议", "server.agents": "智能体", "server.limits": "限制", "server.default": "默认", "server.tools": "{n} 个工具",
  "figures.turns": "运行中的轮次", "figures.streams": "打开的流", "figures.events": "每秒事件", "figures.lag": "事件延迟", "figures.losses": "每秒损失", "figures.memory": "内存",
  "keys.title": "密钥", "keys.name": "名称", "keys.user": "用户", "keys.created": "创建时间", "keys.used": "最近使用", "keys.never": "从未", "keys.add": "新建密钥", "keys.once": "密钥只显示一次，请立即复制。", "keys.revoke": "撤销", "keys.revoke_sure": "使用密钥 {name} 的客户端将立即断开。",
  "warnings.title": "日志警告", "warnings.none": "没有警告。",
};
